//! Virtio devices that the DSDT describes, on machines without PCI.
//!
//! The DSDT is a program in AML. What describes such a device (QEMU's microvm,
//! Firecracker) is constant in it: the identifier `LNRO0005`, and soon behind it a
//! resource template (ACPI 6.5, section 6.4) with the window and the interrupt. So the
//! bytes are searched for these, without running the program.

use ::acpi::{address, word};
use base::PhysAddr;

use super::{find, table};

/// The identifier of a virtio device behind a window of registers.
const VIRTIO_MMIO: &[u8] = b"LNRO0005";
/// A device's resources follow its identifier within so many bytes.
const DESCRIPTION_BYTES_MAX: usize = 256;
/// `Memory32Fixed`: tag, length of the rest; flags, base and length follow.
const MEMORY32_FIXED: &[u8] = &[0x86, 9, 0];
/// `Interrupt` with one number: tag, length of the rest; flags, count and number follow.
const INTERRUPT: &[u8] = &[0x89, 6, 0];

/// Offsets in the FADT.
const FADT_DSDT: usize = 40;
const FADT_LONG_DSDT: usize = 140;

/// A device behind a window of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MmioDevice {
    /// Where the window lies.
    pub at: PhysAddr,
    /// Its size.
    pub bytes: usize,
    /// The interrupt that the device raises.
    pub gsi: u32,
}

/// The virtio devices that the firmware describes, in its order.
pub fn virtio_mmio() -> impl Iterator<Item = MmioDevice> {
    let aml = dsdt().unwrap_or(&[]);
    let is_device = |at: &usize| aml[*at..].starts_with(VIRTIO_MMIO);
    (0..aml.len()).filter(is_device).filter_map(|at| {
        let rest = &aml[at + VIRTIO_MMIO.len()..];
        describe(&rest[..rest.len().min(DESCRIPTION_BYTES_MAX)])
    })
}

pub(super) fn dsdt() -> Option<&'static [u8]> {
    let fadt = find(*b"FACP")?;
    let long = address(fadt, FADT_LONG_DSDT).filter(|&at| at != 0);
    let short = word(fadt, FADT_DSDT).map(u64::from);
    table(long.or(short)?)
}

fn describe(aml: &[u8]) -> Option<MmioDevice> {
    let after = |tag: &[u8]| {
        let at = aml.windows(tag.len()).position(|bytes| bytes == tag)?;
        aml.get(at + tag.len()..)
    };
    let (memory, interrupt) = (after(MEMORY32_FIXED)?, after(INTERRUPT)?);
    Some(MmioDevice {
        at: PhysAddr(u64::from(word(memory, 1)?)),
        bytes: word(memory, 5)? as usize,
        gsi: word(interrupt, 2)?,
    })
}
