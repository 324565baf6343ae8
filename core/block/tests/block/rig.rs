//! A queue on a simulated disk.

use std::sync::Arc;

use base::Instant;
use block::sim::{SimChannel, SimDisk};
use block::{Admitted, Cache, Completion, Done, Durability, Failure, Limits, Operation, Order};
use block::{Queue, Request, SectorRange};
use hal::caching::WriteBack;
use hal::owner::Device;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

/// What comes with a request: its number, and its memory.
#[derive(Debug)]
pub struct Keep {
    pub number: u32,
    pub memory: Vec<DmaBuf<WriteBack, Device>>,
    pub spans: Vec<Span>,
}

impl block::Keep for Keep {
    type Owner = (u32, Vec<DmaBuf<WriteBack, Device>>);

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

/// How requests ended, by their numbers, with the bytes of their memory.
pub type Ended = Vec<(u32, Result<Done, Failure>, Vec<u8>)>;

pub struct Rig {
    pub memory: SimMemory,
    pub disk: SimDisk,
    pub queue: Queue<Keep, SimChannel>,
    pub ended: Ended,
    pub now: Instant,
}

pub const fn limits() -> Limits {
    Limits {
        segments_max: 4,
        segment_bytes_max: 8192,
        command_bytes_max: 16384,
        cache: Cache::WriteBack { forces: false },
        ..Limits::plain(1024)
    }
}

pub fn range(first: u64, count: u64) -> SectorRange {
    SectorRange { first, count }
}

pub fn bytes_of(memory: Vec<DmaBuf<WriteBack, Device>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in memory.into_iter().map(DmaBuf::take_back) {
        let mut copy = vec![0; part.bytes()];
        part.copy_out(0, &mut copy);
        bytes.extend(copy);
    }
    bytes
}

impl Rig {
    pub fn new(limits: Limits, depth: u16) -> Self {
        let memory = SimMemory::new();
        let disk = SimDisk::new(&memory, limits.checked().unwrap(), depth);
        let order = Arc::new(Order::new());
        let queue = Queue::new(disk.channel(), limits.checked().unwrap(), order);
        Self {
            memory,
            disk,
            queue,
            ended: Vec::new(),
            now: Instant::from_millis(1),
        }
    }

    /// A request with memory in pieces of these lengths, filled with `fill`.
    pub fn request(
        &self,
        number: u32,
        operation: Operation,
        sectors: SectorRange,
        lens: &[usize],
        fill: u8,
    ) -> Request<Keep> {
        let (mut memory, mut spans) = (Vec::new(), Vec::new());
        for &len in lens {
            let buffer: DmaBuf = self.memory.dma_alloc(&DmaRequest::new(len, 512)).unwrap();
            buffer.copy_in(0, &vec![fill; len]);
            let buffer = buffer.give();
            spans.push(buffer.dev_addr(0, len).unwrap());
            memory.push(buffer);
        }
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

    pub fn note(ended: &mut Ended, completion: Completion<Keep>) {
        let Keep { number, memory, .. } = completion.keep;
        ended.push((number, completion.result, bytes_of(memory)));
    }

    /// Hands it in; false if there is no room.
    pub fn submit(&mut self, request: Request<Keep>) -> bool {
        let admitted = self.queue.submit(request, self.now);
        self.queue.publish();
        match admitted {
            Admitted::UnderWay => true,
            Admitted::Ended(completion) => {
                Self::note(&mut self.ended, completion);
                true
            }
            Admitted::Full(request) => {
                bytes_of(request.keep.memory);
                false
            }
        }
    }

    pub fn write(&mut self, number: u32, first: u64, fill: u8, durability: Durability) {
        let operation = Operation::Write(durability);
        let request = self.request(number, operation, range(first, 8), &[4096], fill);
        assert!(self.submit(request));
    }

    pub fn flush(&mut self, number: u32) {
        let request = self.request(number, Operation::Flush, range(0, 0), &[], 0);
        assert!(self.submit(request));
    }

    /// Takes what has ended.
    pub fn complete(&mut self) {
        let Self {
            queue, ended, now, ..
        } = self;
        queue.complete(*now, &mut |completion| Self::note(ended, completion));
    }

    /// Lets the disk end all that it has, and all that comes after.
    pub fn run(&mut self, pick: &mut dyn FnMut(usize) -> usize) {
        self.complete();
        while self.disk.pending() != 0 {
            self.disk.finish_all(pick);
            self.complete();
        }
    }

    /// How the request ended.
    pub fn outcome(&mut self, number: u32) -> Result<Done, Failure> {
        let at = self.ended.iter().position(|(other, ..)| *other == number);
        self.ended.swap_remove(at.expect("it has ended")).1
    }
}
