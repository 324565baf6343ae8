//! Memory for simulated devices: a bus of a few buffers on the heap.
//!
//! A test or the simulator gives a [`SimMemory`] to a driver as its [`DmaSource`] and
//! keeps a clone for the device's side, which reads and writes by device address like
//! hardware does. An address that belongs to no live buffer is refused and so found.
//!
//! Memory can also be scattered on the bus ([`SimMemory::pages_at`]), and the DMA contract
//! can be broken on purpose ([`SimMemory::break_contract`]), to show what then happens.

use crate::caching::{MemoryType, WriteBack};
use crate::{DmaBuf, DmaError, DmaRequest, DmaSource, Mmio, SgList};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use base::{DeviceAddr, PAGE_BYTES};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use mbuf::{BLOCK_BYTES, FreeList};

/// The simulated bus lies far from any address of the host, so that mixing them up fails.
const BUS_BASE: u64 = 0x1_0000_0000;
/// Where numbered frames begin: beyond all buffers.
const FRAMES_BASE: u64 = 0x100_0000_0000;
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
    /// Buffers refer to the bus by address, so it lives while there are any.
    itself: Option<Arc<Shared>>,
}

/// What the device sees in one piece.
struct Region {
    device: DeviceAddr,
    base: NonNull<u8>,
    bytes: usize,
    /// Frees the host's memory with its last region.
    _host: Arc<HostMemory>,
}

struct HostMemory {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is only an allocation that any thread may free; who accesses it is the bus'
// business.
unsafe impl Send for HostMemory {}
// SAFETY: as above; `&HostMemory` only computes addresses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(bytes: usize, align: usize) -> Option<Arc<Self>> {
        let layout = Layout::from_size_align(bytes.max(8), align.max(64)).ok()?;
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Arc::new(Self { base, layout }))
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.layout.size());
        // SAFETY: just checked to lie inside of the allocation.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`, and freed only here.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
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
        let request = DmaRequest::new(blocks * BLOCK_BYTES, PAGE_BYTES);
        if let Ok(memory) = self.dma_alloc::<WriteBack>(&request) {
            memory.into_packets(pool);
        }
        pool
    }

    /// Scattered memory: page `i` lies in frame `frames[i]` of the bus.
    pub fn pages_at(&self, frames: &[u64]) -> SgList {
        let host = HostMemory::new(frames.len() * PAGE_BYTES, PAGE_BYTES);
        let pages = frames.iter().enumerate().filter_map(|(index, &frame)| {
            let base = host.as_ref()?.at(index * PAGE_BYTES);
            let device = self.place(host.as_ref()?, base, PAGE_BYTES, frame_addr(frame));
            Some(self.buffer(base, PAGE_BYTES, device))
        });
        SgList::of_pages(pages.collect())
    }

    /// **Breaks the DMA contract**: what the allocator of the story in `docs/dma.md`
    /// handed out. As [`pages_at`](Self::pages_at), but said to be one contiguous buffer
    /// at the address of its first page. Only the simulated bus can tell.
    pub fn break_contract(&self, frames: &[u64]) -> Option<DmaBuf> {
        let host = HostMemory::new(frames.len() * PAGE_BYTES, PAGE_BYTES)?;
        for (index, &frame) in frames.iter().enumerate() {
            let base = host.at(index * PAGE_BYTES);
            self.place(&host, base, PAGE_BYTES, frame_addr(frame));
        }
        let first = frame_addr(*frames.first()?);
        Some(self.buffer(host.base, frames.len() * PAGE_BYTES, first))
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

    fn place(
        &self,
        host: &Arc<HostMemory>,
        base: NonNull<u8>,
        bytes: usize,
        device: DeviceAddr,
    ) -> DeviceAddr {
        self.bus.with(|bus| {
            bus.itself.get_or_insert_with(|| self.bus.clone());
            bus.regions.push(Region {
                device,
                base,
                bytes,
                _host: host.clone(),
            });
        });
        device
    }

    fn buffer<M: MemoryType>(
        &self,
        base: NonNull<u8>,
        bytes: usize,
        device: DeviceAddr,
    ) -> DmaBuf<M> {
        let context = Arc::as_ptr(&self.bus) as usize;
        // SAFETY: OWNED: fresh, zeroed and aligned; the bus only touches it by raw pointers
        // and forgets it in `release`. CONTIGUOUS holds but in `break_contract`, where it
        // only leads the simulated device astray: `locate` checks each access.
        unsafe { DmaBuf::new(base, bytes, device, release, context) }
    }
}

fn frame_addr(frame: u64) -> DeviceAddr {
    DeviceAddr(FRAMES_BASE + frame * PAGE_BYTES as u64)
}

impl Bus {
    fn locate(&self, addr: DeviceAddr, bytes: usize) -> Result<*mut u8, BusFault> {
        let inside = |region: &Region| {
            let offset = addr.0.checked_sub(region.device.0)?;
            let end = offset.checked_add(bytes as u64)?;
            (end <= region.bytes as u64).then(|| region.base.as_ptr().wrapping_add(offset as usize))
        };
        self.regions
            .iter()
            .find_map(inside)
            .or_else(|| self.locate_across(addr, bytes))
            .ok_or(BusFault { addr, bytes })
    }

    /// Pages that follow each other both ways are as good as one region.
    fn locate_across(&self, addr: DeviceAddr, bytes: usize) -> Option<*mut u8> {
        let page = |at: u64| {
            let holds = |region: &&Region| {
                at.checked_sub(region.device.0)
                    .is_some_and(|offset| offset < region.bytes as u64)
            };
            self.regions.iter().find(holds)
        };
        let first = page(addr.0)?;
        let shift = first.base.as_ptr().addr() as u64 - first.device.0;
        let mut at = addr.0;
        while at < addr.0 + bytes as u64 {
            let region = page(at)?;
            if region.base.as_ptr().addr() as u64 - region.device.0 != shift {
                return None;
            }
            at = region.device.0 + region.bytes as u64;
        }
        Some(
            first
                .base
                .as_ptr()
                .wrapping_add((addr.0 - first.device.0) as usize),
        )
    }

    fn next_address(&mut self, request: &DmaRequest, bytes: usize) -> DeviceAddr {
        let align = request.natural_align() as u64;
        let start = (BUS_BASE + self.next).next_multiple_of(align);
        self.next = start - BUS_BASE + bytes as u64 + BUS_GAP_BYTES;
        DeviceAddr(start)
    }

    /// Forgets what lies in a buffer; returns it, and the bus if nothing refers to it.
    fn remove(&mut self, base: NonNull<u8>, bytes: usize) -> (Vec<Region>, Option<Arc<Shared>>) {
        let from = base.as_ptr();
        let inside = |region: &mut Region| {
            (from..from.wrapping_add(bytes.max(1))).contains(&region.base.as_ptr())
        };
        let gone = self.regions.extract_if(.., inside).collect();
        let is_last = self.regions.is_empty();
        (gone, self.itself.take_if(|_| is_last))
    }
}

impl DmaSource for SimMemory {
    fn dma_alloc<M: MemoryType>(&self, request: &DmaRequest) -> Result<DmaBuf<M>, DmaError> {
        request.check()?;
        let bytes = request.bytes();
        let none = DmaError::OutOfMemory { bytes };
        let host = HostMemory::new(bytes, request.natural_align()).ok_or(none)?;
        let device = self.bus.with(|bus| bus.next_address(request, bytes));
        if !request.is_met_by(device) {
            let limit = request.limit().unwrap_or(device);
            return Err(DmaError::OutOfReach { limit });
        }
        self.place(&host, host.base, bytes, device);
        Ok(self.buffer(host.base, bytes, device).honouring(request))
    }
}

fn release(base: NonNull<u8>, bytes: usize, context: usize) {
    // SAFETY: `buffer` made `context` from the bus, which keeps itself alive (`itself`)
    // while it has regions, and this buffer's are still there.
    let bus = unsafe { &*(context as *const Shared) };
    let gone = bus.with(|bus| bus.remove(base, bytes));
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HasDeviceAddr;

    #[test]
    fn driver_and_device_see_the_same_bytes() {
        let memory = SimMemory::new();
        let buf: DmaBuf = memory.dma_alloc(&DmaRequest::new(64, 64)).unwrap();
        let buf = buf.share();
        let span = buf.dev_addr(8, 4).unwrap();
        buf.write_u32(8, 0x0403_0201);
        let mut seen = [0; 4];
        memory.read(span.addr(), &mut seen).unwrap();
        assert_eq!(seen, [1, 2, 3, 4]);
        memory.write(span.addr(), &[9, 9]).unwrap();
        assert_eq!(buf.read_u32(8), 0x0403_0909);
    }

    #[test]
    fn a_device_that_leaves_its_buffer_is_caught() {
        let memory = SimMemory::new();
        let buf: DmaBuf = memory.dma_alloc(&DmaRequest::new(64, 8)).unwrap();
        let buf = buf.give();
        let end = buf.dev_addr(60, 4).unwrap().addr();
        assert_eq!(
            memory.write(end, &[0; 5]),
            Err(BusFault {
                addr: end,
                bytes: 5
            })
        );
        assert_eq!(buf.dev_addr(60, 5), None);
        assert_eq!(buf.dev_addr(usize::MAX, 2), None);
        let addr = buf.dev_addr(0, 1).unwrap().addr();
        drop(buf.take_back());
        assert!(memory.read(addr, &mut [0]).is_err());
        assert_eq!(memory.buffers(), 0);
    }

    #[test]
    fn memory_in_the_devices_hands_is_leaked_and_not_freed() {
        let memory = SimMemory::new();
        let buf: DmaBuf = memory.dma_alloc(&DmaRequest::new(64, 8)).unwrap();
        let buf = buf.give();
        let addr = buf.dev_addr(0, 8).unwrap().addr();
        drop(buf);
        memory.write(addr, &[1; 8]).unwrap();
        let ring: DmaBuf = memory.dma_alloc(&DmaRequest::new(64, 8)).unwrap();
        let mut ring = ring.share();
        ring.retire();
        drop(ring);
        assert_eq!(memory.buffers(), 1);
    }

    #[test]
    fn a_broken_contract_is_right_in_the_first_page_only() {
        let memory = SimMemory::new();
        let area: DmaBuf = memory.break_contract(&[7, 4, 8]).unwrap();
        let area = area.share();
        for offset in [0, 4096, 8192] {
            let span = area.dev_addr(offset, 8).unwrap();
            let _ = memory.write(span.addr(), &7u64.to_le_bytes());
        }
        assert_eq!(area.read_u64(0), 7);
        assert_eq!(area.read_u64(4096), 0, "went to the frame behind the first");
        assert_eq!(area.read_u64(8192), 7, "which is this one");
    }

    #[test]
    fn a_source_honours_boundary_and_limit() {
        let memory = SimMemory::new();
        let request = DmaRequest::new(3000, 16).within(4096);
        for _ in 0..20 {
            let buf: DmaBuf = memory.dma_alloc(&request).unwrap();
            assert!(request.is_met_by(buf.device()));
        }
        let request = request.below(DeviceAddr(1 << 32));
        let refused = memory.dma_alloc::<crate::caching::Uncached>(&request);
        let limit = DeviceAddr(1 << 32);
        assert_eq!(refused.err(), Some(DmaError::OutOfReach { limit }));
    }
}
