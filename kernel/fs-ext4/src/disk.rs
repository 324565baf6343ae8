//! A disk of the kernel's as `core/ext4` wants it.

use alloc::sync::Arc;

use ext4::{Device, DeviceError};
use kernel_block::{Durability, Store};
use mach::klog;

/// The disk of one volume.
pub(super) struct Disk(pub(super) Arc<Store>);

/// The log keeps what the disk says; the file system only learns that it failed.
fn told<T>(result: sync::Result<T>, what: &str) -> Result<T, DeviceError> {
    result.map_err(|error| {
        klog!("ext4: the disk failed to {what}: {error:?}");
        DeviceError
    })
}

impl Device for Disk {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        told(self.0.read(offset, into), "read")
    }

    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        durability: ext4::Durability,
    ) -> Result<(), DeviceError> {
        let durability = match durability {
            ext4::Durability::Volatile => Durability::Volatile,
            ext4::Durability::Forced => Durability::Forced,
        };
        told(self.0.write(offset, from, durability), "write")
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        told(self.0.flush(), "flush")
    }
}
