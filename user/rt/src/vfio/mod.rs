//! A device of the program's own, by Linux' VFIO (`linux/vfio.h`, `docs/vfio.md`).
//!
//! # Problem
//! A driver wants registers, memory that the device reaches, and interrupts. A program gets all three from
//! the kernel, once; then the kernel is in nobody's way, and the IOMMU keeps the device to the program's memory.
//!
//! # Idea
//! The drivers of the kernel run over `hal`, so a program has to bring what `hal` asks for: [`Function`] is a
//! [`hal::pci::PciFunction`], [`DeviceMemory`] a [`hal::DmaSource`], an [`Interrupt`] something to wait for.
//!
//! # Not here
//! Which driver ([`sietch_io`](https://docs.rs/sietch-io)). Registers and memory stay mapped until the program ends: drivers
//! keep pieces of both for as long as they like. The kernel takes the device back with the last
//! descriptor.

mod abi;
mod function;
mod interrupt;
mod memory;

pub use function::Function;
pub use interrupt::Interrupt;
pub use memory::{BlocksForDevice, DeviceMemory};
