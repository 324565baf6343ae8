//! Registers of devices, mapped for the kernel.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_BYTES, PAGE_SHIFT, PhysAddr};
use hal::Mmio;

use super::kernel_map::{self, DEVICE, DEVICES, LOW_DEVICES_END};
use super::{direct, ram};

/// Address space for what is not RAM: one top-level entry.
const AREA_BYTES: u64 = 1 << 39;

/// The registers at `at`, uncached. `None` for what is RAM, or no address of a device.
pub fn map_device(at: PhysAddr, bytes: usize) -> Option<Mmio> {
    let (start, end) = (at.page_floor(), at.checked_add(bytes as u64)?.page_ceil());
    if bytes == 0 || holds_ram(start, end) {
        return None;
    }
    let base = if end.0 <= LOW_DEVICES_END {
        direct::pointer(start)
    } else {
        map_high(start, (end - start) as usize, DEVICE)?
    };
    let base = NonNull::new(base.wrapping_add(at.page_offset()))?;
    // SAFETY: `hal`'s WINDOW: mapped uncached just now or by the direct map, for good.
    Some(unsafe { Mmio::new(base, bytes) })
}

/// Whether a page between `start` and `end` is one of the frame table's: RAM, in use,
/// free or reserved.
pub(super) fn holds_ram(start: PhysAddr, end: PhysAddr) -> bool {
    let table = ram::table();
    let mut pages = (start.0..end.0).step_by(PAGE_BYTES);
    pages.any(|page| table.info(page >> PAGE_SHIFT).is_some())
}

/// Maps whole pages at `start` a second time, with other rights than the direct map.
pub(super) fn map_high(start: PhysAddr, bytes: usize, rights: u64) -> Option<*mut u8> {
    /// Devices' registers are mapped in all address spaces; this is where the next ones go.
    static NEXT: AtomicU64 = AtomicU64::new(DEVICES);
    let at = NEXT.fetch_add(bytes as u64, Relaxed);
    if at + bytes as u64 > DEVICES + AREA_BYTES {
        return None;
    }
    kernel_map::add(at, start, bytes, rights)?;
    Some(core::ptr::with_exposed_provenance_mut(at as usize))
}
