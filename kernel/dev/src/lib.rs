//! Devices that need no driver: /dev/null and its kin, kmsg, and what shows physical memory.
//!
//! Which number opens what is said in `vfs::devices`, where terminals and the link layer register
//! theirs too.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod log;
mod memory;
mod phys_contiguous;
mod physical;

pub use physical::Window;

/// Registers the devices that need no hardware; once at boot.
pub fn init() {
    memory::register();
    log::register();
    phys_contiguous::register();
    physical::register();
}
