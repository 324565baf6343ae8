//! Finds the machine's devices and gives each its driver.
//!
//! `vfio=BB:DD.F[,BB:DD.F...]` names PCI functions that are left to programs.

mod e1000;
mod igb;
mod memory_use;
mod messages;
mod nvme;
mod self_test;
mod virtio;

use alloc::string::ToString;

use pci::Function;

use crate::options;

/// How many virtual functions a function is to have.
pub fn virtual_functions(function: &Function) -> u16 {
    igb::virtual_functions(function) + nvme::virtual_functions(function)
}

/// Starts a driver for everything that it finds. Each driver is a function of its own also in the
/// machine's code: the parts of a card are large, and the boot stack need not hold those of one
/// driver while another starts.
pub fn start() {
    self_test::run();
    let functions = pci::functions().iter();
    for function in functions.filter(|function| !is_for_programs(function)) {
        virtio::start_pci_function(function);
        e1000::start(function);
        igb::start(function);
        nvme::start(function);
    }
    virtio::start_mmio_devices();
}

/// Whether the command line leaves it to programs.
fn is_for_programs(function: &Function) -> bool {
    let name = function.address().to_string();
    options::raw_values("vfio").any(|list| list.split(',').any(|known| known == name))
}
