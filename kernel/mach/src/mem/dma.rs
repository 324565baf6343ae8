//! What drivers need of memory: buffers with device addresses, registers, packet blocks.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{DeviceAddr, PAGE_BYTES, PhysAddr};
use frames::Extent;
use hal::{DmaBuf, DmaSource, Mmio};
use mbuf::{BLOCK_BYTES, FreeList};

use super::kernel_map::{self, DEVICE, DEVICES, LOW_DEVICES_END};
use super::{direct, ram};

/// Pages that a pool of packets grows by at once.
const POOL_STEP_PAGES: usize = 64;
/// Address space for device registers: one top-level entry.
const AREA_BYTES: u64 = 1 << 39;

/// RAM for devices. Without an IOMMU a device address is the physical one.
#[derive(Clone, Copy, Debug, Default)]
pub struct DmaMemory;

impl DmaSource for DmaMemory {
    fn dma_alloc(&self, bytes: usize, align: usize) -> Option<DmaBuf> {
        // A block of the buddy is aligned to its size.
        let pages = bytes.max(align).max(1).div_ceil(PAGE_BYTES);
        let (start, device) = zeroed_extent(pages)?;
        // SAFETY: `hal`'s OWNED: the extent is ours (**Claim**), mapped (**Direct**),
        // zeroed, and page-aligned; `release` gives it back once.
        Some(unsafe { DmaBuf::new(start, pages * PAGE_BYTES, device, Some(release), pages) })
    }
}

fn zeroed_extent(pages: usize) -> Option<(NonNull<u8>, DeviceAddr)> {
    let extent = ram::alloc_extent(pages as u64)?;
    let at = extent.base();
    let (first, _) = extent.into_parts();
    let start = NonNull::new(direct::frame_pointer(first))?;
    // SAFETY: **Claim** and **Direct**: the extent is ours and mapped.
    unsafe { start.write_bytes(0, pages * PAGE_BYTES) };
    Some((start, DeviceAddr(at.0)))
}

fn release(start: NonNull<u8>, _bytes: usize, pages: usize) {
    if let Some(first) = direct::frame_of(start.as_ptr()) {
        ram::free_extent(Extent::from_parts(first, pages as u64));
    }
}

/// Adds room for about `blocks` packets to a pool; returns how many blocks it got, fewer
/// when memory is short.
pub fn grow_packet_pool(pool: &'static FreeList, blocks: usize) -> usize {
    let mut added = 0;
    while added < blocks {
        let wanted = ((blocks - added) * BLOCK_BYTES).div_ceil(PAGE_BYTES);
        let pages = wanted.min(POOL_STEP_PAGES);
        let Some((start, device)) = zeroed_extent(pages) else {
            break;
        };
        // SAFETY: `mbuf`'s Live: zeroed, aligned to a page, contiguous, ours (**Claim**),
        // and never given back.
        added += unsafe { pool.add_region(start, pages * PAGE_BYTES, device) };
    }
    added
}

/// The registers at `at`, uncached. `None` for what is RAM, or no address of a device.
pub fn map_device(at: PhysAddr, bytes: usize) -> Option<Mmio> {
    let (start, end) = (at.page_floor(), at.checked_add(bytes as u64)?.page_ceil());
    let overlaps_ram = |page| ram::table().info(page >> base::PAGE_SHIFT).is_some();
    if bytes == 0 || (start.0..end.0).step_by(PAGE_BYTES).any(overlaps_ram) {
        return None;
    }
    let base = if end.0 <= LOW_DEVICES_END {
        direct::pointer(start)
    } else {
        core::ptr::with_exposed_provenance_mut(map_high(start, (end - start) as usize)? as usize)
    };
    let base = NonNull::new(base.wrapping_add(at.page_offset()))?;
    // SAFETY: `hal`'s WINDOW: mapped uncached just now or by the direct map, for good.
    Some(unsafe { Mmio::new(base, bytes) })
}

fn map_high(start: PhysAddr, bytes: usize) -> Option<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(DEVICES);
    let at = NEXT.fetch_add(bytes as u64, Relaxed);
    if at + bytes as u64 > DEVICES + AREA_BYTES {
        return None;
    }
    kernel_map::add(at, start, bytes, DEVICE)?;
    Some(at)
}
