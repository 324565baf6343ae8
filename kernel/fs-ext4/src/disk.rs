//! A disk of the kernel's as `core/ext4` wants it.

use alloc::sync::Arc;

use checksum::Crc32c;
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
        self.write_parts(offset, &[from], durability)
    }

    fn write_parts(
        &mut self,
        offset: u64,
        parts: &[&[u8]],
        durability: ext4::Durability,
    ) -> Result<(), DeviceError> {
        let durability = match durability {
            ext4::Durability::Volatile => Durability::Volatile,
            ext4::Durability::Forced => Durability::Forced,
        };
        told(self.0.write(offset, parts, durability), "write")
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        told(self.0.flush(), "flush")
    }

    fn sums_begin(&self) -> Crc32c {
        mach::cpu::crc32c_fold().map_or(Crc32c::new(), Crc32c::by)
    }
}
