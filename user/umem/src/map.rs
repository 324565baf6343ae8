//! What lives at an address: one byte for each unit of the address space.
//!
//! A program has 2^47 bytes of addresses, hence 2^33 units. The map is reserved whole and
//! takes frames only where the heap is: a page of it describes 64 MiB. So the class of an
//! address is one load away, whoever allocated it, and a foreign address reads as zero.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::sizes::PLACES;
use crate::sys;

/// Bytes of a unit: slabs and spans are made of them.
pub const UNIT: usize = 1 << UNIT_SHIFT;
pub const UNIT_SHIFT: u32 = 14;
const ADDRESS_BITS: u32 = 47;

/// Not ours, or freed.
pub const NOTHING: u8 = 0;
/// The first unit of a span that was allocated by itself.
pub const SPAN: u8 = 120;
/// The first unit of an allocation with a mapping of its own.
pub const LARGE: u8 = 121;
/// With `UMEM_DEBUG`, where an allocation begins behind its header in another unit.
pub const INSIDE: u8 = 122;
/// Above every value.
pub const VALUES: usize = 128;
const _: () = assert!(PLACES < SPAN as usize, "the caches come first");

static MAP: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Reserves the map if that has not happened; `false` if the system refuses.
pub fn prepare() -> bool {
    if !MAP.load(Ordering::Acquire).is_null() {
        return true;
    }
    let bytes = 1 << (ADDRESS_BITS - UNIT_SHIFT);
    let Some(map) = sys::map(bytes) else {
        return false;
    };
    let first = MAP.compare_exchange(
        ptr::null_mut(),
        map.as_ptr(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    if first.is_err() {
        sys::unmap(map, bytes);
    }
    true
}

/// What lives at `address`.
///
/// # Safety
/// The map is prepared, as it is once any allocation succeeded.
#[inline(always)]
pub unsafe fn get(address: *const u8) -> u8 {
    let map = MAP.load(Ordering::Relaxed);
    // SAFETY: the map covers every address that a program can have.
    unsafe { *map.add(address.addr() >> UNIT_SHIFT) }
}

/// As [`get`], also before the map is prepared.
pub fn look_up(address: *const u8) -> u8 {
    if MAP.load(Ordering::Acquire).is_null() || address.addr() >> ADDRESS_BITS != 0 {
        return NOTHING;
    }
    // SAFETY: it is prepared.
    unsafe { get(address) }
}

/// Writes what lives in `units` units from `start` on. The caller has the units.
pub fn set(start: *const u8, units: usize, value: u8) {
    let map = MAP.load(Ordering::Relaxed);
    // SAFETY: the caller allocated the units, so the map is prepared and covers them.
    unsafe { ptr::write_bytes(map.add(start.addr() >> UNIT_SHIFT), value, units) };
}
