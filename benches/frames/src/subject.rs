//! The allocators that are measured.

use std::ops::DerefMut;
use std::sync::atomic::AtomicU64;

use buddy_system_allocator::FrameAllocator;
use frames::{
    Backing, Extent, Frame, FrameInfo, FrameNo, FrameTable, Layout, LocalFrames, Node, Request,
    Urgency, Zone, ZoneLock, Zones,
};
use spin::Mutex;

/// Frames that each allocator has: 1 GiB.
pub const FRAMES: usize = 1 << 18;
/// Where they start.
const FIRST: FrameNo = 1 << 18;
/// Threads that allocate at most.
pub const CPUS: usize = 2;

/// An allocator with [`FRAMES`] free frames.
pub trait Subject: Sync {
    /// A new one.
    fn new() -> Self;
    /// A block of 2^`order` frames, asked for on `cpu`.
    fn alloc(&self, cpu: usize, order: u32) -> u64;
    /// Gives a block back.
    fn free(&self, cpu: usize, first: u64, order: u32);
}

/// The lock of a zone.
pub struct Lock(Mutex<Zone>);

impl ZoneLock for Lock {
    const UNLOCKED: Self = Self(Mutex::new(Zone::EMPTY));

    #[inline]
    fn lock(&self) -> impl DerefMut<Target = Zone> {
        self.0.lock()
    }
}

/// Free lists in zones behind locks.
pub struct Plain {
    table: FrameTable,
    zones: Zones<Lock>,
}

impl Subject for Plain {
    fn new() -> Self {
        let mut table = FrameTable::new();
        let zones = Zones::new(Layout::new(&[], |_, _| 0));
        let infos = (0..FRAMES).map(|_| FrameInfo::reserved()).collect();
        let words = FrameTable::zero_words(FIRST, FRAMES);
        let zeros = (0..words).map(|_| AtomicU64::new(0)).collect();
        let added = table.add(FIRST, Vec::leak(infos), Vec::leak(zeros));
        added.expect("one section");
        zones.donate(&table, FIRST, FRAMES as u64);
        Self { table, zones }
    }

    #[inline]
    fn alloc(&self, _cpu: usize, order: u32) -> u64 {
        let request = Request::new(1 << order, Urgency::Critical);
        let extent = self.zones.alloc(&self.table, request, Node(0));
        extent.expect("there is memory").into_parts().0
    }

    #[inline]
    fn free(&self, _cpu: usize, first: u64, order: u32) {
        let extent = Extent::from_parts(first, 1 << order);
        self.zones.free(&self.table, extent);
    }
}

impl Backing for Plain {
    type Lock = Lock;

    #[inline]
    fn table(&self) -> &FrameTable {
        &self.table
    }

    #[inline]
    fn zones(&self) -> &Zones<Lock> {
        &self.zones
    }

    fn zero(&self, _frame: FrameNo) {}
}

/// What the kernel uses: the same with caches in front.
pub struct Cached {
    memory: Plain,
    caches: [LocalFrames; CPUS],
}

impl Subject for Cached {
    fn new() -> Self {
        Self {
            memory: Plain::new(),
            caches: [const { LocalFrames::new() }; CPUS],
        }
    }

    #[inline]
    fn alloc(&self, cpu: usize, order: u32) -> u64 {
        let cache = &self.caches[cpu];
        if order == 0 {
            let frame = cache.alloc(&self.memory, Urgency::Critical);
            return frame.expect("there is memory").into_number();
        }
        let request = Request::new(1 << order, Urgency::Critical);
        let extent = cache.alloc_extent(&self.memory, request);
        extent.expect("there is memory").into_parts().0
    }

    #[inline]
    fn free(&self, cpu: usize, first: u64, order: u32) {
        let cache = &self.caches[cpu];
        if order == 0 {
            return cache.free(&self.memory, Frame::from_number(first));
        }
        cache.free_extent(&self.memory, Extent::from_parts(first, 1 << order));
    }
}

/// The crate `buddy_system_allocator`.
pub struct Crate(Mutex<FrameAllocator<33>>);

impl Subject for Crate {
    fn new() -> Self {
        let mut frames = FrameAllocator::new();
        frames.add_frame(FIRST as usize, FIRST as usize + FRAMES);
        Self(Mutex::new(frames))
    }

    #[inline]
    fn alloc(&self, _cpu: usize, order: u32) -> u64 {
        let first = self.0.lock().alloc(1 << order);
        first.expect("there is memory") as u64
    }

    #[inline]
    fn free(&self, _cpu: usize, first: u64, order: u32) {
        self.0.lock().dealloc(first as usize, 1 << order);
    }
}
