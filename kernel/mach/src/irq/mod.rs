//! Interrupts: vectors, who handles them, and how devices reach them.
//!
//! A vector is a number that a device (by MSI-X), a pin of the I/O APIC or another CPU
//! raises. Handlers run with interrupts closed, only ever while the CPU was in user mode
//! or halted, so they may take spin locks; they should note the event and return.
//! Those of the class that is let in during a nap ([`Vector::SERVICE`], [`Vector::NAP`]) take
//! none and allocate nothing, nor does [`dispatch`] for them.

mod pic;
mod pins;
mod remap;
mod vector;

pub use crate::vector::Vector;
pub use pins::{Polarity, Trigger, controllers, lead, mask, route, route_isa, unmask};
pub use remap::{
    Destination, InterruptRemapper, Source, lead_again, msi_message, plain_message, remap_by,
};
pub use vector::{allocate, count};

pub(crate) use pic::silence as silence_pics;
pub(crate) use pins::{init as init_pins, route_nmi};
pub(crate) use vector::{add_cpu, bind, dispatch};
