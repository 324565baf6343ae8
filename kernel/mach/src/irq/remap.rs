//! Interrupts behind an IOMMU that remaps them: a device names an entry of the IOMMU's table, and
//! the entry says who may name it, the vector and the CPU.
//!
//! A vector has one handler and is raised by one device at a time, so each has the entry of its
//! own number. Before [`remap_by`] messages say vectors and CPUs themselves.

use base::CpuId;
use hal::pci::PciAddress;

use super::pins;
use crate::sync::Once;
use crate::vector::Vector;

/// Who raises an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A PCI function.
    Function(PciAddress),
    /// The I/O APIC.
    Pins,
}

/// What an entry leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The vector, which is the entry's number, too.
    pub vector: u8,
    /// It is an NMI, and the vector is only the entry's number.
    pub is_nmi: bool,
    /// It lasts until its device is served.
    pub is_level: bool,
    /// The CPU's APIC.
    pub apic_id: u32,
}

/// What drives the IOMMUs.
pub trait InterruptRemapper: Sync {
    /// Sets an entry. `None` if that source's interrupts pass as they are; else what it sends to
    /// name the entry.
    fn lead(&self, source: Source, to: Destination) -> Option<(u64, u32)>;
}

/// Said once at boot.
static REMAPPER: Once<&'static dyn InterruptRemapper> = Once::new();

/// From now on devices name entries. Before any function was told a message; pins that are routed
/// already are led anew.
pub fn remap_by(remapper: &'static dyn InterruptRemapper) {
    REMAPPER.call_once(|| remapper);
    pins::lead_anew();
}

/// The entry for it, if interrupts are remapped: what names it.
pub(super) fn lead(source: Source, to: Destination) -> Option<(u64, u32)> {
    REMAPPER.get()?.lead(source, to)
}

/// What a function must write, and where, to raise `vector` on `cpu`.
pub fn msi_message(function: PciAddress, vector: Vector, cpu: CpuId) -> (u64, u32) {
    lead_message(function, vector, cpu).unwrap_or_else(|| plain_message(vector, cpu))
}

/// Has what the function was told to write for `vector` raise it on another CPU from now on. False if its interrupts are
/// not remapped, so that it would have to be told.
pub fn lead_again(function: PciAddress, vector: Vector, cpu: CpuId) -> bool {
    lead_message(function, vector, cpu).is_some()
}

fn lead_message(function: PciAddress, vector: Vector, cpu: CpuId) -> Option<(u64, u32)> {
    let to = Destination {
        vector: vector.number(),
        is_nmi: false,
        is_level: false,
        apic_id: crate::cpu::apic_id(cpu),
    };
    lead(Source::Function(function), to)
}

/// The same for who is not behind an IOMMU, as IOMMUs themselves (SDM volume 3, 12.11).
pub fn plain_message(vector: Vector, cpu: CpuId) -> (u64, u32) {
    let address = 0xfee0_0000 | u64::from(crate::cpu::apic_id(cpu)) << 12;
    (address, u32::from(vector.number()))
}
