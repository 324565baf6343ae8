//! Random histories of requests to a simulated disk, which ends with a cut.
//!
//! The queue of `core/block` says of writes that they are durable; whatever it said must be there. Writes
//! to one area follow each other, so its versions are in order, and nothing older than the durable
//! one may be left. The disk loses its cache when a flush fails, hangs, and is started anew.

use std::sync::Arc;

use base::Instant;
use block::sim::{SimChannel, SimDisk};
use block::{
    Admitted, Cache, Completion, Done, Durability, Limits, Operation, Order, Queue, Request,
    SectorRange, Verdict, Written,
};
use hal::caching::WriteBack;
use hal::owner::Device;
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

use crate::random::Random;

const AREAS: usize = 6;
const AREA_SECTORS: u64 = 64;
/// Commands that the disk takes at once.
const DEPTH: u16 = 8;
/// Requests in a history: each has a byte of its own.
const REQUESTS: usize = 120;

/// What comes with a request.
struct Keep {
    number: usize,
    memory: Vec<DmaBuf<WriteBack, Device>>,
    spans: Vec<Span>,
}

impl block::Keep for Keep {
    type Owner = (usize, Vec<DmaBuf<WriteBack, Device>>);

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

/// A write, by its number.
struct Version {
    area: usize,
    fill: u8,
    sectors: u64,
}

struct Rig {
    memory: SimMemory,
    disk: SimDisk,
    queue: Queue<Keep, SimChannel>,
    now: Instant,
    ended: Vec<Completion<Keep>>,
    versions: Vec<Version>,
    /// The area is written to.
    is_busy: [bool; AREAS],
    /// Writes that have ended, and when.
    open: Vec<(usize, usize, Written)>,
    /// Versions that are said to be durable.
    durable: Vec<usize>,
    steps: usize,
    /// Flushes that were sent, and when.
    flushes: Vec<(usize, usize)>,
}

/// Runs the history of a seed.
pub fn history(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let cache = match random.below(3) {
        0 => Cache::WriteBack { forces: true },
        _ => Cache::WriteBack { forces: false },
    };
    let mut rig = Rig::new(cache);
    for _ in 0..REQUESTS * 3 {
        rig.step(&mut random)?;
    }
    rig.disk.lose_power(&mut |count| random.below(count));
    let found = rig.check();
    // What is still on its way gives its memory back.
    rig.queue.stop();
    let mut rest = Vec::new();
    rig.queue.fail_all(rig.now, &mut |ended| rest.push(ended));
    rest.into_iter().for_each(free);
    found.map_err(|error| format!("requests with seed {seed}: {error}"))
}

fn free(completion: Completion<Keep>) {
    for buffer in completion.keep.memory {
        buffer.take_back();
    }
}

impl Rig {
    fn new(cache: Cache) -> Self {
        let limits = Limits {
            segments_max: 4,
            segment_bytes_max: 8192,
            command_bytes_max: 16384,
            cache,
            ..Limits::plain(AREAS as u64 * AREA_SECTORS)
        };
        let limits = limits.checked().expect("limits of a disk");
        let memory = SimMemory::new();
        let disk = SimDisk::new(&memory, limits, DEPTH);
        let queue = Queue::new(disk.channel(), limits, Arc::new(Order::new()));
        Self {
            memory,
            disk,
            queue,
            now: Instant::from_millis(1),
            ended: Vec::new(),
            versions: Vec::new(),
            is_busy: [false; AREAS],
            open: Vec::new(),
            durable: Vec::new(),
            steps: 0,
            flushes: Vec::new(),
        }
    }

    fn step(&mut self, random: &mut Random) -> Result<(), String> {
        self.steps += 1;
        match random.below(24) {
            0..=7 if self.versions.len() < REQUESTS => self.write(random),
            8..=10 => self.flush(),
            11 => {
                self.disk.stop();
                self.queue.stop();
                // All are sent again.
                self.flushes.clear();
                let ended = &mut self.ended;
                let channel = self.disk.channel();
                self.queue
                    .restart(channel, self.now, &mut |end| ended.push(end));
            }
            12 if self.disk.pending() != 0 => {
                self.disk.end_next_with(Verdict::Failed);
                self.finish(random);
                let is_flush = |end: &Completion<Keep>| end.keep.number >= REQUESTS;
                if self
                    .ended
                    .iter()
                    .any(|end| is_flush(end) && end.result.is_err())
                {
                    self.disk.lose_cache();
                }
            }
            _ if self.disk.pending() != 0 => self.finish(random),
            _ => {}
        }
        self.settle()
    }

    fn finish(&mut self, random: &mut Random) {
        self.disk.finish(random.below(self.disk.pending()));
        let ended = &mut self.ended;
        self.queue.complete(self.now, &mut |end| ended.push(end));
    }

    fn write(&mut self, random: &mut Random) {
        let area = random.below(AREAS);
        if self.is_busy[area] {
            return;
        }
        let durability = match random.once_in(3) {
            true => Durability::Forced,
            false => Durability::Volatile,
        };
        let sectors = [8, AREA_SECTORS][random.below(2)];
        let number = self.versions.len();
        let fill = number as u8 + 1;
        self.versions.push(Version {
            area,
            fill,
            sectors,
        });
        self.is_busy[area] = true;
        let (mut spans, mut keep) = (Vec::new(), Vec::new());
        for _ in 0..sectors / 8 {
            let request = DmaRequest::new(4096, 512);
            let buffer: DmaBuf = self.memory.dma_alloc(&request).expect("memory");
            buffer.copy_in(0, &[fill; 4096]);
            let buffer = buffer.give();
            spans.push(buffer.dev_addr(0, 4096).expect("all of it"));
            keep.push(buffer);
        }
        self.submit(Request {
            operation: Operation::Write(durability),
            sectors: SectorRange {
                first: area as u64 * AREA_SECTORS,
                count: sectors,
            },
            keep: Keep {
                number,
                memory: keep,
                spans,
            },
        });
    }

    fn flush(&mut self) {
        let number = REQUESTS + self.steps;
        // One that waits for a place is sent later.
        let is_sent = self.disk.pending() < usize::from(DEPTH);
        let sent = if is_sent { self.steps } else { usize::MAX };
        self.flushes.push((number, sent));
        self.submit(Request {
            operation: Operation::Flush,
            sectors: SectorRange::default(),
            keep: Keep {
                number,
                memory: Vec::new(),
                spans: Vec::new(),
            },
        });
    }

    fn submit(&mut self, request: Request<Keep>) {
        match self.queue.submit(request, self.now) {
            Admitted::UnderWay => {}
            Admitted::Ended(completion) => self.ended.push(completion),
            Admitted::Full(_) => unreachable!("there are fewer than the queue takes"),
        }
        self.queue.publish();
    }

    /// Believes what the queue says.
    fn settle(&mut self) -> Result<(), String> {
        for completion in std::mem::take(&mut self.ended) {
            let number = completion.keep.number;
            if let Some(version) = self.versions.get(number) {
                self.is_busy[version.area] = false;
            }
            match completion.result {
                Ok(Done::Written(written)) => self.open.push((number, self.steps, written)),
                Ok(Done::Durable(_)) => self.durable.push(number),
                Ok(Done::Flushed(flushed)) => {
                    let sent = self.flushes.iter().find(|flush| flush.0 == number);
                    let sent = sent.map_or(usize::MAX, |flush| flush.1);
                    for (version, ended, written) in std::mem::take(&mut self.open) {
                        match written.settle(&flushed) {
                            Ok(_) if ended > sent => {
                                return Err("a flush proves what ended after it was sent".into());
                            }
                            Ok(_) => self.durable.push(version),
                            Err(written) => self.open.push((version, ended, written)),
                        }
                    }
                }
                Ok(_) | Err(_) => {}
            }
            for buffer in completion.keep.memory {
                buffer.take_back();
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for area in 0..AREAS {
            let first = area as u64 * AREA_SECTORS;
            let found = self.disk.bytes(SectorRange {
                first,
                count: AREA_SECTORS,
            });
            for (sector, bytes) in found.chunks(512).enumerate() {
                let covers = |number: &usize| {
                    let version = &self.versions[*number];
                    version.area == area && (sector as u64) < version.sectors
                };
                let durable = self.durable.iter().copied().filter(covers).max();
                let may_be = (durable.unwrap_or(0)..self.versions.len()).filter(covers);
                let is_old = durable.is_none() && bytes[0] == 0;
                let is_known = may_be
                    .into_iter()
                    .any(|number| self.versions[number].fill == bytes[0]);
                if !is_old && !is_known || bytes.iter().any(|byte| *byte != bytes[0]) {
                    return Err(format!("area {area}, sector {sector} is {}", bytes[0]));
                }
            }
        }
        Ok(())
    }
}
