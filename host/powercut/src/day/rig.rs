//! A simulated disk behind the queue of `core/block`, with a clock and with faults by chance.
//!
//! A request is sent and its end waited for, as a thread of the kernel does it: commands end in any
//! order, some fail, some never end. Then the clock jumps until the queue calls the disk stuck, and it
//! is stopped and started anew (`kernel/block/src/recovery.rs`).
//!
//! `ext4::Device` wants to be sent between threads, which simulated memory cannot: so the rig belongs to
//! its thread, and [`Disk`] is only the way to it.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Duration, Instant};
use block::sim::{SimChannel, SimDisk};
use block::{
    Admitted, Cache, Completion, Durability, Limits, Operation, Order, Queue, Request, SectorRange,
    Verdict,
};
use ext4::{Device, DeviceError};
use hal::caching::WriteBack;
use hal::owner;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

use super::Faults;
use crate::medium::Medium;
use crate::random::Random;

/// Bytes of one request.
const REQUEST_BYTES: usize = 4096;
/// Requests under way at once.
const REQUESTS: usize = 32;
/// Commands that the disk takes at once.
const DEPTH: u16 = 8;

/// What comes with a request.
struct Keep {
    number: usize,
    memory: Option<DmaBuf<WriteBack, owner::Device>>,
    spans: Vec<Span>,
}

impl block::Keep for Keep {
    type Owner = (usize, Option<DmaBuf<WriteBack, owner::Device>>);

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn of_page(page: Span, (number, memory): Self::Owner) -> Self {
        Self {
            number,
            memory,
            spans: vec![page],
        }
    }
}

/// The disk of this thread.
pub struct Rig {
    memory: SimMemory,
    disk: SimDisk,
    queue: Queue<Keep, SimChannel>,
    limits: Limits,
    now: Instant,
    random: Random,
    faults: Faults,
    /// What happened so far.
    pub seen: Seen,
    /// The machine has no power until it is mounted again.
    pub is_off: bool,
    /// The disk answers no more.
    is_gone: bool,
    /// A command that never ends is among those that it has: nothing ends before a reset.
    is_hung: bool,
    /// No faults happen.
    is_calm: bool,
    ended: Vec<Completion<Keep>>,
}

/// Faults that have happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Commands.
    pub commands: u64,
    /// Reads, writes and flushes that failed.
    pub failed: [u64; 3],
    /// Resets after a time-out.
    pub resets: u64,
    /// Disks that vanished.
    pub gone: u64,
    /// Cuts of the power in the middle of a request.
    pub cuts: u64,
}

thread_local! {
    static RIG: RefCell<Option<Rig>> = const { RefCell::new(None) };
}

/// Puts a disk with these bytes into this thread, at the time 0.
pub fn install(bytes: &[u8], faults: Faults, seed: u64) {
    let mut rig = Rig::new(bytes.len() as u64 / 512, faults, seed);
    rig.is_calm = true;
    let written = rig.write(0, bytes, Durability::Volatile);
    written.and_then(|()| rig.flush()).expect("no faults yet");
    rig.is_calm = false;
    rig.seen = Seen::default();
    rig.now = Instant::from_millis(0);
    RIG.with_borrow_mut(|place| *place = Some(rig));
}

/// Does something with the disk of this thread.
pub fn with<T>(act: impl FnOnce(&mut Rig) -> T) -> T {
    RIG.with_borrow_mut(|rig| act(rig.as_mut().expect("a disk was installed")))
}

/// The same as `act` would do with a disk that has no faults.
pub fn with_calm<T>(act: impl FnOnce() -> T) -> T {
    with(|rig| rig.is_calm = true);
    let result = act();
    with(|rig| rig.is_calm = false);
    result
}

impl Rig {
    fn new(sectors: u64, faults: Faults, seed: u64) -> Self {
        let limits = Limits {
            segments_max: 2,
            segment_bytes_max: 2048,
            command_bytes_max: 2048,
            cache: Cache::WriteBack {
                forces: seed.is_multiple_of(2),
            },
            ..Limits::plain(sectors)
        };
        let limits = limits.checked().expect("limits of a disk");
        let memory = SimMemory::new();
        let disk = SimDisk::new(&memory, limits, DEPTH);
        let queue = Queue::new(disk.channel(), limits, Arc::new(Order::new()));
        Self {
            memory,
            disk,
            queue,
            limits,
            now: Instant::from_millis(0),
            random: Random::new(seed ^ 0xd15c),
            faults,
            seen: Seen::default(),
            is_off: false,
            is_gone: false,
            is_hung: false,
            is_calm: false,
            ended: Vec::new(),
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time passes without requests.
    pub fn wait_until(&mut self, time: Instant) {
        self.now = self.now.max(time);
    }

    /// The power goes, and comes back: what was in the cache may be there, sector by sector.
    pub fn lose_power(&mut self) {
        let random = &mut self.random;
        self.disk.lose_power(&mut |count| random.below(count));
        self.queue.stop();
        self.fail_all();
        for completion in std::mem::take(&mut self.ended) {
            completion.keep.memory.map(DmaBuf::take_back);
        }
        let order = Arc::new(Order::new());
        self.queue = Queue::new(self.disk.channel(), self.limits, order);
        (self.is_off, self.is_gone, self.is_hung) = (false, false, false);
        self.now += Duration::from_secs(5);
    }

    /// The bytes that reads see.
    pub fn medium(&self) -> Medium {
        let count = self.limits.sectors;
        Medium::new(self.disk.bytes(SectorRange { first: 0, count }))
    }

    fn happens(&mut self, one_in: usize) -> bool {
        !self.is_calm && self.random.once_in(one_in)
    }

    /// The next command ends somehow, or time passes until somebody notices that none does.
    fn step(&mut self) {
        self.now += Duration::from_micros(50 + self.random.bits() % 2000);
        if self.happens(self.faults.cut) {
            self.seen.cuts += 1;
            self.is_off = true;
            return;
        }
        if self.happens(self.faults.vanish) {
            self.seen.gone += 1;
            (self.is_gone, self.is_hung) = (true, true);
        }
        self.is_hung |= self.happens(self.faults.hang);
        match self.is_hung || self.disk.pending() == 0 {
            true => self.time_out(),
            false => self.end_one(),
        }
    }

    fn end_one(&mut self) {
        let at = self.random.below(self.disk.pending());
        let kind = self.disk.operation(at);
        let (kind, one_in) = match kind {
            Some(Operation::Read) => (0, self.faults.read),
            Some(Operation::Flush) => (2, self.faults.flush),
            _ => (1, self.faults.write),
        };
        self.seen.commands += 1;
        if self.happens(one_in) {
            self.seen.failed[kind] += 1;
            self.disk.end_next_with(Verdict::Failed);
            if kind == 2 && self.random.once_in(2) {
                self.disk.lose_cache();
            }
        }
        self.disk.finish(at);
        let ended = &mut self.ended;
        self.queue.complete(self.now, &mut |end| ended.push(end));
    }

    fn time_out(&mut self) {
        self.now += Duration::from_secs(1);
        if !self.queue.is_stuck(self.now) {
            return;
        }
        self.disk.stop();
        self.queue.stop();
        if self.is_gone {
            self.fail_all();
            return;
        }
        self.seen.resets += 1;
        // One that hangs again, and again, is given up.
        self.is_hung = self.happens(4);
        let (ended, channel) = (&mut self.ended, self.disk.channel());
        self.queue
            .restart(channel, self.now, &mut |end| ended.push(end));
    }

    fn fail_all(&mut self) {
        let ended = &mut self.ended;
        self.queue.fail_all(self.now, &mut |end| ended.push(end));
    }

    /// Sends requests together and waits for all; what was read goes to `into`.
    fn run(&mut self, requests: Vec<Request<Keep>>, into: &mut [u8]) -> Result<(), DeviceError> {
        if self.is_off {
            return Err(DeviceError);
        }
        let mut left = requests.len();
        for request in requests {
            match self.queue.submit(request, self.now) {
                Admitted::UnderWay => {}
                Admitted::Ended(completion) => self.ended.push(completion),
                Admitted::Full(_) => unreachable!("there are fewer than the queue takes"),
            }
        }
        self.queue.publish();
        let mut failed = false;
        loop {
            for completion in std::mem::take(&mut self.ended) {
                left -= 1;
                failed |= completion.result.is_err();
                let at = completion.keep.number * REQUEST_BYTES;
                let Some(memory) = completion.keep.memory.map(DmaBuf::take_back) else {
                    continue;
                };
                if let Some(part) = into.get_mut(at..).filter(|part| !part.is_empty()) {
                    let len = part.len().min(REQUEST_BYTES);
                    memory.copy_out(0, &mut part[..len]);
                }
            }
            match (left, self.is_off, failed) {
                (0, _, false) => return Ok(()),
                (0, _, true) | (_, true, _) => return Err(DeviceError),
                _ => self.step(),
            }
        }
    }

    fn request(
        &self,
        number: usize,
        operation: Operation,
        offset: u64,
        bytes: &[u8],
    ) -> Request<Keep> {
        let (mut memory, mut spans) = (None, Vec::new());
        if !bytes.is_empty() {
            let buffer = self.memory.dma_alloc(&DmaRequest::new(bytes.len(), 512));
            let buffer: DmaBuf = buffer.expect("memory");
            buffer.copy_in(0, bytes);
            let buffer = buffer.give();
            spans.push(buffer.dev_addr(0, bytes.len()).expect("all of it"));
            memory = Some(buffer);
        }
        let sectors = SectorRange {
            first: offset / 512,
            count: bytes.len() as u64 / 512,
        };
        Request {
            operation,
            sectors,
            keep: Keep {
                number,
                memory,
                spans,
            },
        }
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        for (part, at) in into
            .chunks_mut(REQUEST_BYTES * REQUESTS)
            .zip((offset..).step_by(REQUEST_BYTES * REQUESTS))
        {
            let pieces = part
                .chunks(REQUEST_BYTES)
                .zip((at..).step_by(REQUEST_BYTES));
            let requests = pieces
                .enumerate()
                .map(|(number, (piece, at))| self.request(number, Operation::Read, at, piece));
            let requests = requests.collect();
            self.run(requests, part)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        durability: Durability,
    ) -> Result<(), DeviceError> {
        let operation = Operation::Write(durability);
        let parts = from.chunks(REQUEST_BYTES * REQUESTS);
        for (part, at) in parts.zip((offset..).step_by(REQUEST_BYTES * REQUESTS)) {
            let pieces = part
                .chunks(REQUEST_BYTES)
                .zip((at..).step_by(REQUEST_BYTES));
            let requests = pieces.map(|(piece, at)| self.request(0, operation, at, piece));
            let requests = requests.collect();
            self.run(requests, &mut [])?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let request = self.request(0, Operation::Flush, 0, &[]);
        self.run(vec![request], &mut [])
    }
}

/// The way to the disk of this thread.
pub struct Disk;

impl Device for Disk {
    fn bytes(&self) -> u64 {
        with(|rig| rig.limits.sectors * 512)
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        with(|rig| rig.read(offset, into))
    }

    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        durability: ext4::Durability,
    ) -> Result<(), DeviceError> {
        let durability = match durability {
            ext4::Durability::Volatile => Durability::Volatile,
            ext4::Durability::Forced => Durability::Forced,
        };
        with(|rig| rig.write(offset, from, durability))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        with(Rig::flush)
    }
}
