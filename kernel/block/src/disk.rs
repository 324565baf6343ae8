//! A disk: its queues, and how a thread's request goes through one of them.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Duration, Instant};
use block::{Admitted, ChannelBox, Completion, Control, Counters, Done, Failure, Limits};
use block::{Operation, Order, Parts, Question, Queue, Reply, Request, SectorRange, TIMEOUT};
use mach::klog;
use mach::mem::DmaMemory;
use mach::sync::Spin;
use sync::{Mutex, Result, Wait, WaitQueue};

use crate::bio::{Bio, Carried, Ended, Pool};
use crate::ends::Ends;
use crate::failure::error_of;
use crate::nodes::{Family, Identity};
use crate::outcome::Outcome;
use crate::partition::Partition;
use crate::urgent::Urgent;

/// A thread looks at its request so much later than it is due.
const GRACE: Duration = Duration::from_millis(100);

/// One queue of a device.
pub(crate) struct Lane {
    pub queue: Spin<Queue<Carried, ChannelBox>>,
    pub idle: Pool,
    /// Threads that wait for room in it.
    room: WaitQueue,
    /// It has requests that the device does not know of.
    is_unseen: AtomicBool,
}

impl Lane {
    /// Waits until there is room for one more request, but not for long.
    fn wait_for_room(&self) {
        let has_room = || self.queue.lock().has_room().then_some(());
        let soon = mach::time::now() + GRACE;
        // Without room by then the next look comes anyway.
        let _ = self.room.wait(Wait::UNINTERRUPTIBLE.until(soon), has_room);
    }
}

/// A disk.
pub struct Disk {
    number: usize,
    identity: Identity,
    pub(crate) lanes: Box<[Lane]>,
    pub(crate) control: Mutex<Box<dyn Control + Send>>,
    pub(crate) memory: DmaMemory,
    limits: Spin<Limits>,
    /// Of the limits; a device whose blocks change their size is not started again.
    block_bytes: u32,
    sectors: AtomicU64,
    /// By their numbers.
    pub(crate) partitions: Spin<Vec<Arc<Partition>>>,
    /// Held by who writes through pages of the kernel's.
    pub(crate) buffered: Mutex<()>,
    /// For file systems, when no memory is left.
    pub(crate) urgent: Urgent,
    /// Flushes that failed; an open file tells of those that came since it last told.
    flush_failures: AtomicU64,
    /// A queue is broken, and its threads are to see to it.
    pub(crate) is_stuck: AtomicBool,
    /// The device could not be started anew.
    pub(crate) is_gone: AtomicBool,
    /// A timer looks after what no thread waits for.
    pub(crate) is_watched: AtomicBool,
    pub(crate) me: Weak<Self>,
}

impl Disk {
    pub(crate) fn new(
        number: usize,
        identity: Identity,
        parts: Parts,
        memory: DmaMemory,
    ) -> Arc<Self> {
        let (limits, order) = (parts.control.limits(), Arc::new(Order::new()));
        let lane = |channel| Lane {
            queue: Spin::new(Queue::new(channel, limits, order.clone())),
            idle: Pool::new(),
            room: WaitQueue::new(),
            is_unseen: AtomicBool::new(false),
        };
        let disk = Arc::new_cyclic(|me| Self {
            number,
            identity,
            lanes: parts.channels.into_iter().map(lane).collect(),
            control: Mutex::new(parts.control),
            memory,
            limits: Spin::new(limits),
            block_bytes: limits.block_bytes,
            sectors: AtomicU64::new(limits.sectors),
            partitions: Spin::new(Vec::new()),
            buffered: Mutex::new(()),
            urgent: Urgent::new(),
            flush_failures: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            me: me.clone(),
        });
        // Asks for the first interrupt.
        disk.complete();
        disk
    }

    /// `vda` is the first.
    pub fn name(&self) -> &'static str {
        self.identity.name
    }

    /// What drives it.
    pub fn family(&self) -> Family {
        self.identity.family
    }

    /// The major number that it has with all of its family.
    pub fn major(&self) -> u32 {
        self.identity.family.major()
    }

    /// Major and minor number of a partition; 0 is the disk itself.
    pub fn device(&self, partition: u8) -> (u32, u32) {
        self.identity.number(partition)
    }

    /// The partition with these numbers, 0 for the disk itself.
    pub(crate) fn partition_of(&self, device: (u32, u32)) -> Option<u8> {
        self.identity.partition_of(device)
    }

    /// Its place among the disks.
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many queues it has.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Its shape, as last heard.
    pub fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Its size, as last heard.
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors.load(Ordering::Relaxed)
    }

    /// Its partitions, by their numbers.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.partitions.lock().clone()
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        let (mut sum, now) = (Counters::default(), mach::time::now());
        for lane in &self.lanes {
            sum.add(&lane.queue.lock().counters(now));
        }
        sum
    }

    /// Asks the device for its size, which may have changed.
    pub(crate) fn refresh(&self) -> Limits {
        let mut control = self.control.lock();
        self.refresh_by(&mut **control)
    }

    /// The same where nobody may wait: who is at `control` now asks by himself, or starts the device anew.
    pub(crate) fn note_size(&self) {
        if let Some(mut control) = self.control.try_lock() {
            let before = self.sectors();
            let limits = self.refresh_by(&mut **control);
            if limits.sectors != before {
                klog!(
                    "disk {} sectors={} (before: {before})",
                    self.name(),
                    limits.sectors
                );
            }
        }
    }

    fn refresh_by(&self, control: &mut (dyn Control + Send)) -> Limits {
        let limits = control.refresh();
        for lane in &self.lanes {
            lane.queue.lock().set_limits(limits);
        }
        *self.limits.lock() = limits;
        self.sectors.store(limits.sectors, Ordering::Relaxed);
        limits
    }

    /// Asks what only its kind of device is asked.
    pub fn ask(
        &self,
        question: &Question,
        answer: &mut [u8],
    ) -> core::result::Result<Reply, Failure> {
        self.control.lock().ask(question, answer)
    }

    /// Takes what has ended in all queues.
    pub(crate) fn complete(&self) {
        let now = mach::time::now();
        for lane in &self.lanes {
            let mut queue = lane.queue.lock();
            queue.complete(now, &mut Ends::new(&lane.idle));
            if queue.is_broken() && !self.is_stuck.swap(true, Ordering::AcqRel) {
                queue.keeps().for_each(wake);
            }
            drop(queue);
            lane.room.wake_all();
        }
    }

    /// Does what needs no memory.
    pub(crate) fn command(&self, operation: Operation, sectors: SectorRange) -> Result<Done> {
        let Ok(bio) = self.bio() else {
            return self.urgent.run(self, operation, sectors, None);
        };
        let (result, bio) = self.run(operation, sectors, bio);
        self.give(bio);
        result.map_err(error_of)
    }

    /// Empties the device's cache.
    pub(crate) fn flush(&self) -> Result<()> {
        let flushed = self.command(Operation::Flush, SectorRange::default());
        if flushed.is_err() {
            self.flush_failures.fetch_add(1, Ordering::AcqRel);
        }
        flushed.map(|_| ())
    }

    /// Flushes that have failed so far.
    pub(crate) fn flush_failures(&self) -> u64 {
        self.flush_failures.load(Ordering::Acquire)
    }

    /// An empty request.
    ///
    /// Errors: `OutOfMemory`.
    pub(crate) fn bio(&self) -> Result<Box<Bio>> {
        self.lane().idle.take()
    }

    /// One that is not needed any more.
    pub(crate) fn give(&self, bio: Box<Bio>) {
        self.lane().idle.give(bio);
    }

    /// Sends a request and sleeps until it is over, whatever signals come.
    pub(crate) fn run(&self, operation: Operation, sectors: SectorRange, bio: Box<Bio>) -> Ended {
        let outcome = bio.outcome.clone();
        outcome.prepare();
        let mut request = Request {
            operation,
            sectors,
            keep: Carried::Own(bio),
        };
        let lane = self.lane();
        loop {
            let admitted = {
                let mut queue = lane.queue.lock();
                let admitted = self.submit(&mut queue, request);
                queue.publish();
                admitted
            };
            match admitted {
                Admitted::UnderWay => return self.wait(&outcome),
                Admitted::Ended(completion) => {
                    outcome.forget();
                    lane.idle.hand_out(completion);
                    return self.wait(&outcome);
                }
                Admitted::Full(back) => request = back,
            }
            lane.wait_for_room();
        }
    }

    /// Hands a request to a queue, unless the device is gone.
    fn submit(
        &self,
        queue: &mut Queue<Carried, ChannelBox>,
        request: Request<Carried>,
    ) -> Admitted<Carried> {
        let now = mach::time::now();
        match self.is_gone.load(Ordering::Acquire) {
            false => queue.submit(request, now),
            true => Admitted::Ended(Completion {
                result: Err(Failure::Gone),
                operation: request.operation,
                sectors: request.sectors,
                begun: now,
                keep: request.keep,
            }),
        }
    }

    /// Hands in a request whose end is told to somebody; the device sees it with the next
    /// [`send_begun`](Self::send_begun), or when there is no room for more, which is waited for. It comes
    /// back if the disk is gone.
    pub(crate) fn begin(
        &self,
        operation: Operation,
        sectors: SectorRange,
        bio: Box<Bio>,
    ) -> core::result::Result<(), Box<Bio>> {
        if self.is_gone.load(Ordering::Acquire) {
            return Err(bio);
        }
        let lane = self.lane();
        let mut request = Request {
            operation,
            sectors,
            keep: Carried::Own(bio),
        };
        loop {
            let admitted = {
                let mut queue = lane.queue.lock();
                lane.is_unseen.store(true, Ordering::Relaxed);
                self.submit(&mut queue, request)
            };
            match admitted {
                Admitted::UnderWay => {
                    self.watch();
                    return Ok(());
                }
                Admitted::Ended(completion) => {
                    lane.idle.hand_out(completion);
                    return Ok(());
                }
                Admitted::Full(back) => request = back,
            }
            self.send_begun();
            lane.wait_for_room();
        }
    }

    /// Shows the device what was begun.
    pub(crate) fn send_begun(&self) {
        for lane in &self.lanes {
            if lane.is_unseen.load(Ordering::Relaxed) {
                let mut queue = lane.queue.lock();
                lane.is_unseen.store(false, Ordering::Relaxed);
                queue.publish();
            }
        }
    }

    /// The queue of this CPU, or the one that it shares.
    pub(crate) fn lane(&self) -> &Lane {
        let cpu = mach::cpu::id().0 as usize;
        let number = match self.lanes.len() {
            1 => 0,
            lanes => cpu % lanes,
        };
        // tidy: there is a queue at least, and the index is below their number.
        &self.lanes[number]
    }

    fn wait(&self, outcome: &Outcome<Box<Bio>>) -> Ended {
        loop {
            if let Some(ended) = outcome.take() {
                return ended;
            }
            let due = mach::time::now() + TIMEOUT + GRACE;
            let is_stuck = || self.is_stuck.load(Ordering::Acquire);
            let how = Wait::UNINTERRUPTIBLE.until(due);
            let parked = how.park_unless(|| outcome.is_there() || is_stuck());
            if parked.is_err() || is_stuck() {
                self.recover();
            }
        }
    }

    /// The same at boot, where no thread can sleep yet: looks at the device until `until`; `None` if it
    /// has not ended by then.
    pub(crate) fn run_at_boot(
        &self,
        operation: Operation,
        sectors: SectorRange,
        bio: Box<Bio>,
        until: Instant,
    ) -> Option<Ended> {
        let outcome = bio.outcome.clone();
        let request = Request {
            operation,
            sectors,
            keep: Carried::Own(bio),
        };
        let admitted = {
            let mut queue = self.lane().queue.lock();
            let admitted = queue.submit(request, mach::time::now());
            queue.publish();
            admitted
        };
        if let Admitted::Ended(completion) = admitted {
            self.lane().idle.hand_out(completion);
            return outcome.take();
        }
        while mach::time::now() < until {
            self.complete();
            if let Some(ended) = outcome.take() {
                return Some(ended);
            }
            core::hint::spin_loop();
        }
        None
    }
}

/// A thread that waits for a request looks at the device.
fn wake(carried: &Carried) {
    if let Carried::Own(bio) = carried {
        bio.outcome.wake();
    }
}
