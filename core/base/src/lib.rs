//! Units and addresses: the words every other crate speaks.
//!
//! A number that means something has a type, so that a guest-physical address is
//! never taken for a virtual one and nanoseconds never for ticks. [`lock`] and [`Atomics`] are how a
//! mechanism says by what it shares its data, [`Memory`] whom it asks for memory, [`SharedMemory`] how
//! it reaches a ring that a program has mapped. This crate depends on nothing and does nothing but arithmetic.
//! Not here: time sources (a clock is an argument everywhere), memory, errors.
#![no_std]
#![forbid(unsafe_code)]

mod addr;
mod atomics;
mod cpu;
mod duration;
pub mod lock;
mod memory;
mod shared_memory;
mod time;

pub use addr::{DeviceAddr, PAGE_BYTES, PAGE_SHIFT, PhysAddr, VirtAddr};
pub use atomics::{Atomics, Native, Word};
pub use cpu::{CPUS_MAX, CpuBits, CpuId, CpuSet, SharedCpuBits, SharedCpuSet};
pub use duration::Duration;
pub use memory::{Memory, NoMemory};
pub use shared_memory::SharedMemory;
pub use time::Instant;
