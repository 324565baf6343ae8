//! The firmware's tables (ACPI 6.5, chapter 5), as far as a machine without AML needs them.
//!
//! Tables are found from the root pointer, which the loader names. Lengths and checksums are
//! checked before anything is read; what is malformed is as if it were not there.
//!
//! Invariant **Tables**: the firmware's tables lie below 4 GiB, which the direct map covers
//! from boot on, in memory that nobody writes.
//!
//! Not here: what can be read without a machine (`core/acpi`), and executing AML. The few things that we need of it stand in it literally
//! ([`virtio_mmio`], [`power_off`]).

mod dsdt;
mod hpet;
mod pm_timer;
mod power;
mod srat;

pub use dsdt::{MmioDevice, virtio_mmio};
pub(crate) use hpet::hpet;
pub(crate) use pm_timer::pm_timer;
pub(crate) use power::{power_off, reset};
pub(crate) use srat::numa;

use ::acpi::{address, sums_to_zero, word};
use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP};

/// Bytes of the header that all tables share.
const HEADER_BYTES: usize = 36;

/// The table with this signature.
pub fn find(signature: [u8; 4]) -> Option<&'static [u8]> {
    let root = crate::boot::info().acpi?;
    let entries = table(root.at)?
        .get(HEADER_BYTES..)?
        .chunks_exact(root.entry_bytes);
    entries
        .filter_map(|entry| table(address(entry, 0)?))
        .find(|table| table.starts_with(&signature))
}

/// The table at this address, header included.
fn table(address: u64) -> Option<&'static [u8]> {
    let bytes = word(physical(address, HEADER_BYTES)?, 4)? as usize;
    let is_whole = |table: &&[u8]| table.len() >= HEADER_BYTES && sums_to_zero(table);
    physical(address, bytes).filter(is_whole)
}

fn physical(address: u64, bytes: usize) -> Option<&'static [u8]> {
    let end = address.checked_add(bytes as u64)?;
    if end > BOOT_DIRECT_MAP_BYTES {
        return None;
    }
    // SAFETY: **Tables**.
    Some(unsafe { core::slice::from_raw_parts((DIRECT_MAP + address) as *const u8, bytes) })
}
