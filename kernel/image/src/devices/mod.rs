//! Finds the machine's devices and gives each its driver.

mod e1000;
mod igb;
mod messages;
mod self_test;
mod virtio;

pub use igb::virtual_functions;

/// Starts a driver for everything that it finds.
pub fn start() {
    self_test::run();
    for function in pci::functions() {
        virtio::start_pci_function(function);
        e1000::start(function);
        igb::start(function);
    }
    virtio::start_mmio_devices();
}
