//! The allocators that are measured.

use std::ops::DerefMut;
use std::sync::atomic::AtomicU64;

use buddy_system_allocator::FrameAllocator;
use frames::{
    Backing, Extent, Frame, FrameInfo, FrameNo, FrameTable, LocalFrames, Node, Request, Urgency,
    Zones,
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

/// Free lists in zones behind a lock.
pub struct Plain {
    table: FrameTable,
    zones: Mutex<Zones>,
}

impl Subject for Plain {
    fn new() -> Self {
        let (mut table, mut zones) = (FrameTable::new(), Zones::new());
        let infos = (0..FRAMES).map(|_| FrameInfo::reserved()).collect();
        let words = FrameTable::zero_words(FIRST, FRAMES);
        let zeros = (0..words).map(|_| AtomicU64::new(0)).collect();
        let added = table.add(FIRST, Vec::leak(infos), Vec::leak(zeros));
        added.expect("one section");
        zones.add(Node(0), 0..1 << 20).expect("one zone");
        zones.donate(&table, FIRST, FRAMES as u64);
        let zones = Mutex::new(zones);
        Self { table, zones }
    }

    #[inline]
    fn alloc(&self, _cpu: usize, order: u32) -> u64 {
        let request = Request::new(1 << order, Urgency::Critical);
        let extent = self.zones.lock().alloc(&self.table, request);
        extent.expect("there is memory").into_parts().0
    }

    #[inline]
    fn free(&self, _cpu: usize, first: u64, order: u32) {
        let extent = Extent::from_parts(first, 1 << order);
        self.zones.lock().free(&self.table, extent);
    }
}

impl Backing for Plain {
    #[inline]
    fn table(&self) -> &FrameTable {
        &self.table
    }

    fn zones(&self) -> impl DerefMut<Target = Zones> {
        self.zones.lock()
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
