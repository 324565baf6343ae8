//! Interrupts: vectors, who handles them, and how devices reach them.
//!
//! A vector is a number that a device (by MSI-X), a pin of the I/O APIC or another CPU
//! raises. Handlers run with interrupts closed, only ever while the CPU was in user mode
//! or halted, so they may take spin locks; they should note the event and return.

mod pic;
mod pins;
mod vector;

pub use crate::vector::Vector;
pub use pins::{Polarity, Trigger, lead, mask, route, route_isa, unmask};
pub use vector::{allocate, count};

pub(crate) use pic::silence as silence_pics;
pub(crate) use pins::{init as init_pins, route_nmi};
pub(crate) use vector::{bind, dispatch};

use base::CpuId;

/// What a device must write, and where, to raise `vector` on `cpu` (SDM volume 3, 12.11).
pub fn msi_message(vector: Vector, cpu: CpuId) -> (u64, u32) {
    let address = 0xfee0_0000 | u64::from(crate::cpu::apic_id(cpu)) << 12;
    (address, u32::from(vector.number()))
}
