//! Virtio devices over PCI and MMIO (VIRTIO 1.2, chapters 3 and 4).
//!
//! A device type (network, volume ...) is the same whatever bus it sits on; a
//! [`Transport`] is how its registers are reached. A driver takes a transport through the
//! order that the specification demands (section 3.1.1):
//!
//! ```text
//! Transport::new ─▶ negotiate(features) ─▶ make_queue(...)* ─▶ start
//! ```
//!
//! Only modern devices (`VIRTIO_F_VERSION_1`); what a device claims about its own
//! registers is checked against the windows they lie in.
//! Not here: rings (`virtq`), who handles interrupts (the kernel).
#![no_std]
#![forbid(unsafe_code)]

mod error;
mod mmio;
mod pci;
mod queue;
mod transport;

pub use error::Error;
pub use mmio::{InterruptRegisters, MmioTransport};
pub use pci::PciTransport;
pub use queue::QueueShape;
pub use transport::{Doorbell, Kind, NO_VECTOR, Transport};

bitflags::bitflags! {
    /// Features that every device type shares (section 6).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Features: u64 {
        /// Descriptors may point to tables of descriptors.
        const INDIRECT_DESC = 1 << 28;
        /// Indices say from when on the other side wants to be told.
        const EVENT_IDX = 1 << 29;
        /// The device complies with version 1 of the specification.
        const VERSION_1 = 1 << 32;
        /// Device addresses are translated as for any other device.
        const ACCESS_PLATFORM = 1 << 33;
    }
}
