//! Random requests of all kinds against bitmaps that remember every frame.
//!
//!     cargo test -p frames --test oracle
//!     FRAMES_OPS=1000000000 SEED=7 cargo test --release -p frames --test oracle -- --nocapture

#![forbid(unsafe_code)]

use std::ops::DerefMut;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use frames::{
    Backing, Extent, Frame, FrameInfo, FrameNo, FrameTable, HUGE_PAGES, Layout, LocalFrames, Node,
    PAGES_MAX, Reach, Request, Urgency, Zone, ZoneLock, Zones,
};
use models::Random;

/// Frames below 4 GiB: first, and how many. Odd, so that there are blocks of all orders.
const LOW: (FrameNo, usize) = (PAGES_MAX + 3, 20 * PAGES_MAX as usize - 5);
/// Frames above 4 GiB, all in blocks of the largest order.
const HIGH: (FrameNo, usize) = (LOW_END + PAGES_MAX, 30 * PAGES_MAX as usize);
const LOW_END: FrameNo = 1 << 20;
/// Where node 1 starts: node 0 has RAM on both sides of 4 GiB.
const NODE_1: FrameNo = HIGH.0 + 15 * PAGES_MAX;
/// Two are on node 0, the second is on node 1.
const CPUS: usize = 3;
/// Operations for which memory fills, and as many for which it empties.
const TIDE: u64 = 100_000;

/// One bit for each frame of both sections.
struct Bitmap(Vec<AtomicU64>);

impl Bitmap {
    fn new() -> Self {
        let words = (LOW.1 + HIGH.1).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets the bit to `value`; returns what it was.
    fn put(&self, frame: FrameNo, value: bool) -> bool {
        let index = match frame.checked_sub(HIGH.0) {
            Some(index) => LOW.1 + index as usize,
            None => (frame - LOW.0) as usize,
        };
        let (word, bit) = (&self.0[index / 64], 1 << (index % 64));
        let old = match value {
            true => word.fetch_or(bit, Relaxed),
            false => word.fetch_and(!bit, Relaxed),
        };
        old & bit != 0
    }
}

struct Lock(Mutex<Zone>);

impl ZoneLock for Lock {
    const UNLOCKED: Self = Self(Mutex::new(Zone::EMPTY));

    fn lock(&self) -> impl DerefMut<Target = Zone> {
        self.0.lock().unwrap()
    }
}

/// Memory whose content is one bit: written or zero.
struct Memory {
    table: FrameTable,
    zones: Zones<Lock>,
    written: Bitmap,
}

impl Backing for Memory {
    type Lock = Lock;

    fn table(&self) -> &FrameTable {
        &self.table
    }

    fn zones(&self) -> &Zones<Lock> {
        &self.zones
    }

    fn zero(&self, frame: FrameNo) {
        assert!(self.written.put(frame, false), "frame {frame} zeroed twice");
    }
}

impl Memory {
    fn new() -> Self {
        let starts = [(0, Node(0)), (NODE_1, Node(1))];
        let distance = |from, to| if from == to { 10 } else { 20 };
        let (mut table, zones) = (
            FrameTable::new(),
            Zones::new(Layout::new(&starts, distance)),
        );
        for (first, frames) in [LOW, HIGH] {
            let infos = (0..frames).map(|_| FrameInfo::reserved()).collect();
            let words = FrameTable::zero_words(first, frames);
            let zeros = (0..words).map(|_| AtomicU64::new(0)).collect();
            table
                .add(first, Vec::leak(infos), Vec::leak(zeros))
                .unwrap();
            assert_eq!(zones.donate(&table, first, frames as u64), frames as u64);
        }
        let written = Bitmap::new();
        (LOW.0..LOW.0 + LOW.1 as u64).for_each(|frame| _ = written.put(frame, true));
        (HIGH.0..HIGH.0 + HIGH.1 as u64).for_each(|frame| _ = written.put(frame, true));
        Self {
            table,
            zones,
            written,
        }
    }
}

/// The machine under test, and what it gave out.
struct World {
    memory: Memory,
    cpus: [LocalFrames; CPUS],
    used: Bitmap,
    singles: Vec<Frame>,
    extents: Vec<Extent>,
    held: u64,
}

impl World {
    fn new() -> Self {
        let cpus = [const { LocalFrames::new() }; CPUS];
        let memory = Memory::new();
        for (cpu, node) in cpus.iter().zip([0, 1, 0]) {
            cpu.settle(Node(node), &memory.zones);
        }
        cpus[2].shuffle(0x5EED);
        Self {
            memory,
            cpus,
            used: Bitmap::new(),
            singles: Vec::new(),
            extents: Vec::new(),
            held: 0,
        }
    }

    /// Notes frames that were given out; `is_zeroed` if they were to be zeros.
    fn note(&mut self, first: FrameNo, pages: u64, is_zeroed: bool) {
        for frame in first..first + pages {
            assert!(!self.used.put(frame, true), "frame {frame} doubled");
            let was_written = self.memory.written.put(frame, true);
            assert!(!(is_zeroed && was_written), "frame {frame} is not zero");
        }
        self.held += pages;
    }

    fn forget(&mut self, first: FrameNo, pages: u64) {
        (first..first + pages).for_each(|frame| assert!(self.used.put(frame, false)));
        self.held -= pages;
    }

    fn alloc_single(&mut self, cpu: usize, is_zeroed: bool) {
        let cpu = &self.cpus[cpu];
        let frame = match is_zeroed {
            true => cpu.alloc_zeroed(&self.memory, Urgency::Ordinary),
            false => cpu.alloc(&self.memory, Urgency::Critical),
        };
        if let Some(frame) = frame {
            self.note(frame.number(), 1, is_zeroed);
            self.singles.push(frame);
        }
    }

    fn alloc_extent(&mut self, cpu: usize, request: Request, is_zeroed: bool) {
        let cpu = &self.cpus[cpu];
        let extent = match is_zeroed {
            true => cpu.alloc_extent_zeroed(&self.memory, request),
            false => cpu.alloc_extent(&self.memory, request),
        };
        if let Some(extent) = extent {
            assert_eq!(extent.pages(), request.pages);
            assert!(
                extent
                    .first()
                    .is_multiple_of(request.pages.next_power_of_two())
            );
            assert!(request.reach == Reach::Any || extent.first() < LOW_END);
            self.note(extent.first(), extent.pages(), is_zeroed);
            self.extents.push(extent);
        }
    }

    fn free_single(&mut self, cpu: usize, index: usize) {
        if index < self.singles.len() {
            let frame = self.singles.swap_remove(index);
            self.forget(frame.number(), 1);
            self.cpus[cpu].free(&self.memory, frame);
        }
    }

    fn free_extent(&mut self, cpu: usize, index: usize) {
        if index < self.extents.len() {
            let extent = self.extents.swap_remove(index);
            self.forget(extent.first(), extent.pages());
            self.cpus[cpu].free_extent(&self.memory, extent);
        }
    }

    /// A huge page or an extent becomes single frames.
    fn break_up(&mut self, index: usize) {
        if index < self.extents.len() {
            let (first, pages) = self.extents.swap_remove(index).into_parts();
            let frames = (first..first + pages).map(Frame::from_number);
            self.singles.extend(frames);
        }
    }

    fn step(&mut self, random: &mut Random, is_flood: bool) {
        let cpu = random.below(CPUS);
        let any = |len: usize, random: &mut Random| random.below(len.max(1) as u64) as usize;
        match random.below(1024) {
            0..160 => self.alloc_single(cpu, false),
            160..320 => self.alloc_single(cpu, true),
            320..640 if is_flood => self.alloc_single(cpu, false),
            320..972 => self.free_single(cpu, any(self.singles.len(), random)),
            972..980 => {
                self.alloc_extent(cpu, Request::new(HUGE_PAGES, Urgency::Ordinary), false);
            }
            980..984 => {
                let pages = 1 + random.below(PAGES_MAX);
                let urgency = Urgency::Ordinary;
                let reach = Reach::Low;
                let request = Request {
                    reach,
                    ..Request::new(pages, urgency)
                };
                self.alloc_extent(cpu, request, random.below(8) == 0);
            }
            984..992 => {
                let request = Request::new(1 + random.below(40), Urgency::Critical);
                self.alloc_extent(cpu, request, false);
            }
            992..1014 => self.free_extent(cpu, any(self.extents.len(), random)),
            1014..1016 => self.break_up(any(self.extents.len(), random)),
            1016..1023 => _ = (0..200).find(|_| !self.cpus[cpu].zero_one(&self.memory)),
            _ if random.below(100) == 0 => self.cpus[cpu].flush(&self.memory),
            _ => {}
        }
    }

    fn free_frames(&self) -> u64 {
        let resting: u64 = self.cpus.iter().map(|cpu| cpu.stats().resting).sum();
        self.memory.zones().free_frames() + resting
    }

    fn free_all(&mut self) {
        while !self.singles.is_empty() {
            self.free_single(0, self.singles.len() - 1);
        }
        while !self.extents.is_empty() {
            self.free_extent(1, self.extents.len() - 1);
        }
        self.cpus.iter().for_each(|cpu| cpu.flush(&self.memory));
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_frame_is_lost_doubled_or_falsely_zero_and_all_large_blocks_come_back() {
    let (ops, seed) = (number("FRAMES_OPS", 1_000_000), number("SEED", 1));
    println!("SEED={seed} FRAMES_OPS={ops}");
    let start = Instant::now();
    let mut world = World::new();
    let total = world.free_frames();
    let blocks = |world: &World| {
        let stats = world.memory.zones().stats();
        stats.map(|zone| zone.blocks).collect::<Vec<_>>()
    };
    let at_first = blocks(&world);
    let mut random = Random::new(seed);
    let mut most = 0;
    for op in 0..ops {
        world.step(&mut random, (op / TIDE).is_multiple_of(2));
        most = most.max(world.held);
        if op % 1024 == 0 {
            assert_eq!(world.free_frames() + world.held, total, "SEED={seed}");
        }
    }
    let counts: Vec<_> = world.cpus.iter().map(LocalFrames::stats).collect();
    world.free_all();
    assert_eq!(world.memory.zones().free_frames(), total, "SEED={seed}");
    assert_eq!(blocks(&world), at_first, "all merged again, SEED={seed}");
    println!(
        "{ops} operations in {:.0?}, at most {most} of {total} frames in use: {counts:#?}",
        start.elapsed()
    );
}
