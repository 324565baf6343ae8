//! The queues against a simulated device.

mod control;
mod receive;
mod transmit;

use base::DeviceAddr;
use hal::Mmio;
use hal::sim::SimMemory;
use mbuf::FreeList;
use virtio::{MmioTransport, Transport};
use virtq::Addresses;
use virtq::sim::Device;

/// A bus, a pool of packet buffers on it, and a device's registers.
struct Bench {
    memory: SimMemory,
    pool: &'static FreeList,
    registers: Mmio,
}

impl Bench {
    fn new(queue_size: u32, buffers: usize) -> Self {
        let memory = SimMemory::new();
        let registers = memory.registers(64);
        registers.write32(0x00, u32::from_le_bytes(*b"virt"));
        registers.write32(0x04, 2);
        registers.write32(0x08, 1);
        registers.write32(0x34, queue_size);
        let pool = memory.packet_pool(buffers);
        Self {
            memory,
            pool,
            registers,
        }
    }

    fn transport(&self) -> Transport {
        let driver = self.registers.window(0, self.registers.bytes()).unwrap();
        Transport::Mmio(MmioTransport::new(driver).unwrap())
    }

    /// The device's side of the queue that was added last.
    fn device(&self) -> Device {
        let rings = Addresses {
            descriptors: DeviceAddr(self.registers.read64(0x80)),
            available: DeviceAddr(self.registers.read64(0x90)),
            used: DeviceAddr(self.registers.read64(0xa0)),
        };
        Device::new(&self.memory, rings, self.registers.read32(0x38) as u16)
    }
}
