//! Devices: what a node's number opens.
//!
//! A driver registers a number with a function that opens it; a node in /dev (or
//! anywhere) only carries the number. The memory devices and what shows physical memory
//! live here; terminals and the link layer register theirs from outside. Opening an
//! unknown number is ENXIO.

mod log;
mod memory;
mod phys_contiguous;
mod physical;
mod table;

pub use physical::Window;
pub use table::{Device, Open, make_nodes_by, node_of, nodes, open, register};

/// Registers the devices that need no hardware; once at boot.
pub fn init() {
    memory::register();
    log::register();
    phys_contiguous::register();
    physical::register();
}
