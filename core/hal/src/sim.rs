//! Memory for simulated devices: a bus of a few buffers on the heap.
//!
//! A test or the simulator gives a [`SimMemory`] to a driver as its [`DmaSource`] and
//! keeps a clone for the device's side, which reads and writes by device address like
//! hardware does. An address that belongs to no live buffer is refused and so found.

use crate::{DmaBuf, DmaSource, Mmio};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use base::DeviceAddr;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use mbuf::{BLOCK_BYTES, FreeList};

/// The simulated bus lies far from any address of the host, so that mixing them up fails.
const BUS_BASE: u64 = 0x1_0000_0000;
/// Buffers are this far apart at least: running over an end hits nothing.
const BUS_GAP_BYTES: u64 = 4096;

/// A cheap handle to a simulated bus; clones share it. The device's side stays on one
/// thread, and the driver's buffers with it.
#[derive(Clone, Default)]
pub struct SimMemory {
    bus: Arc<Shared>,
    one_thread: PhantomData<*const ()>,
}

/// Buffers may be dropped on any thread, hence a lock.
#[derive(Default)]
struct Shared {
    taken: AtomicBool,
    bus: UnsafeCell<Bus>,
}

impl Shared {
    fn with<T>(&self, work: impl FnOnce(&mut Bus) -> T) -> T {
        while self.taken.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: `taken` is ours: nobody else is between the swap and the store, and
        // `work` never comes back here.
        let result = work(unsafe { &mut *self.bus.get() });
        self.taken.store(false, Ordering::Release);
        result
    }
}

#[derive(Default)]
struct Bus {
    regions: Vec<Region>,
    next: u64,
}

struct Region {
    device: DeviceAddr,
    base: NonNull<u8>,
    layout: Layout,
}

/// The device touched memory that nobody gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusFault {
    /// Where.
    pub addr: DeviceAddr,
    /// How many bytes.
    pub bytes: usize,
}

impl SimMemory {
    /// An empty bus.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a device does to fetch bytes.
    pub fn read(&self, addr: DeviceAddr, to: &mut [u8]) -> Result<(), BusFault> {
        self.bus.with(|bus| {
            let from = bus.locate(addr, to.len())?;
            // SAFETY: `locate` checked the range against a live allocation.
            unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
            Ok(())
        })
    }

    /// What a device does to store bytes.
    pub fn write(&self, addr: DeviceAddr, from: &[u8]) -> Result<(), BusFault> {
        self.bus.with(|bus| {
            let to = bus.locate(addr, from.len())?;
            // SAFETY: `locate` checked the range against a live allocation.
            unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            Ok(())
        })
    }

    /// Packet buffers that the device can reach. They are never freed.
    pub fn packet_pool(&self, blocks: usize) -> &'static FreeList {
        let pool: &'static FreeList = Box::leak(Box::default());
        if let Some(buf) = self.dma_alloc(blocks * BLOCK_BYTES, 4096) {
            let buf = ManuallyDrop::new(buf);
            // SAFETY: `mbuf`'s Live: zeroed, aligned, ours, and leaked just now.
            unsafe { pool.add_region(buf.base(), buf.bytes(), buf.device()) };
        }
        pool
    }

    /// Registers that only remember what is written to them. They are never freed.
    pub fn registers(&self, words: usize) -> Mmio {
        let memory = Box::leak(vec![0u64; words].into_boxed_slice());
        // SAFETY: WINDOW: leaked, so mapped for good, and no reference to it remains.
        unsafe { Mmio::new(NonNull::from(memory).cast(), words * 8) }
    }

    /// Live buffers, to find leaks.
    pub fn buffers(&self) -> usize {
        self.bus.with(|bus| bus.regions.len())
    }
}

impl Bus {
    fn locate(&self, addr: DeviceAddr, bytes: usize) -> Result<*mut u8, BusFault> {
        let inside = |region: &Region| {
            let offset = addr.0.checked_sub(region.device.0)?;
            let end = offset.checked_add(bytes as u64)?;
            (end <= region.layout.size() as u64)
                .then(|| region.base.as_ptr().wrapping_add(offset as usize))
        };
        self.regions
            .iter()
            .find_map(inside)
            .ok_or(BusFault { addr, bytes })
    }
}

impl Bus {
    fn add(&mut self, base: NonNull<u8>, layout: Layout) -> DeviceAddr {
        let start = (BUS_BASE + self.next).next_multiple_of(layout.align() as u64);
        self.next = start - BUS_BASE + layout.size() as u64 + BUS_GAP_BYTES;
        let device = DeviceAddr(start);
        self.regions.push(Region {
            device,
            base,
            layout,
        });
        device
    }

    fn remove(&mut self, base: NonNull<u8>) -> Option<Region> {
        let at = self.regions.iter().position(|region| region.base == base)?;
        Some(self.regions.swap_remove(at))
    }
}

impl DmaSource for SimMemory {
    fn dma_alloc(&self, bytes: usize, align: usize) -> Option<DmaBuf> {
        let layout = Layout::from_size_align(bytes.max(8), align.max(8)).ok()?;
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let device = self.bus.with(|bus| bus.add(base, layout));
        let context = Arc::into_raw(self.bus.clone()) as usize;
        // SAFETY: OWNED: fresh, zeroed and aligned; the bus only touches it by raw pointers
        // and forgets it in `release`.
        Some(unsafe { DmaBuf::new(base, bytes, device, Some(release), context) })
    }
}

fn release(base: NonNull<u8>, _bytes: usize, context: usize) {
    // SAFETY: `dma_alloc` made `context` with `into_raw`, and a buffer releases once.
    let bus = unsafe { Arc::from_raw(context as *const Shared) };
    if let Some(region) = bus.with(|bus| bus.remove(base)) {
        // SAFETY: allocated with this layout, removed from the bus just now.
        unsafe { dealloc(region.base.as_ptr(), region.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_and_device_see_the_same_bytes() {
        let memory = SimMemory::new();
        let buf = memory.dma_alloc(64, 64).unwrap();
        let span = buf.span(8, 4).unwrap();
        buf.write_u32(8, 0x0403_0201);
        let mut seen = [0; 4];
        memory.read(span.addr, &mut seen).unwrap();
        assert_eq!(seen, [1, 2, 3, 4]);
        memory.write(span.addr, &[9, 9]).unwrap();
        assert_eq!(buf.read_u32(8), 0x0403_0909);
    }

    #[test]
    fn a_device_that_leaves_its_buffer_is_caught() {
        let memory = SimMemory::new();
        let buf = memory.dma_alloc(64, 8).unwrap();
        let end = buf.span(60, 4).unwrap().addr;
        assert_eq!(
            memory.write(end, &[0; 5]),
            Err(BusFault {
                addr: end,
                bytes: 5
            })
        );
        assert_eq!(buf.span(60, 5), None);
        assert_eq!(buf.span(usize::MAX, 2), None);
        let addr = buf.span(0, 1).unwrap().addr;
        drop(buf);
        assert!(memory.read(addr, &mut [0]).is_err());
        assert_eq!(memory.buffers(), 0);
    }
}
