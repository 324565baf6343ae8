//! A device as a program has it open.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use base::PAGE_BYTES;
use dev::Window;
use hal::caching::Caching;
use mm::MemoryObject;
use mm::io::{Sink, Source};
use sync::{Error, Result};
use vfio::numbers;
use vfs::file::{File, FileRef, OpenFile, Text};

use super::Device;
use super::info::{self, Region};
use crate::vectors;

/// An open file of a device.
pub fn file(device: Arc<Device>) -> FileRef {
    Arc::new(DeviceFile(device))
}

struct DeviceFile(Arc<Device>);

impl File for DeviceFile {
    fn is_seekable(&self) -> bool {
        true
    }

    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        match Region::at(offset) {
            (Region::Bar(bar), at) => self.0.read_bar(bar, at, to),
            (Region::Config, at) => self.0.read_config(at, to),
            _ => Err(Error::Invalid),
        }
    }

    fn write_at(&self, _open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        match Region::at(offset) {
            (Region::Bar(bar), at) => self.0.write_bar(bar, at, from),
            (Region::Config, at) => self.0.write_config(at, from),
            _ => Err(Error::Invalid),
        }
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            numbers::DEVICE_GET_INFO => info::device(&self.0, argument),
            numbers::DEVICE_GET_REGION_INFO => info::region(&self.0, argument),
            numbers::DEVICE_GET_IRQ_INFO => info::irq(&self.0, argument),
            numbers::DEVICE_SET_IRQS => self.0.set_irqs(argument),
            numbers::DEVICE_RESET => self.0.reset().map(|()| 0),
            numbers::DEVICE_NVME_ENABLE => self.0.nvme_enable(argument),
            numbers::DEVICE_NVME_ADMIN => self.0.nvme_admin(argument),
            _ => Err(Error::NotTerminal),
        }
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let (Region::Bar(number), at) = Region::at(range.start) else {
            return Err(Error::Invalid);
        };
        if self.0.config.lock().is_revoked() {
            return Err(Error::WrongDevice);
        }
        let (start, area) = self.0.mappable(number).ok_or(Error::Invalid)?;
        // Whole pages only: what shares a page with a smaller range may be another device's.
        let bytes = (range.end - range.start).next_multiple_of(PAGE_BYTES as u64);
        let end = at.checked_add(bytes).ok_or(Error::Invalid)?;
        if at < area.start || end > area.end {
            return Err(Error::Invalid);
        }
        let first = info::offset_of(number as u32);
        Window::open(start, first, range, is_shared, Caching::Uncached)
    }

    fn describe(&self, text: &mut Text) {
        let dropped = self.0.dropped.load(Relaxed);
        let strays = vectors::strays();
        _ = writeln!(text, "vfio-dropped-bytes:\t{dropped}");
        _ = writeln!(text, "vfio-stray-interrupts:\t{strays}");
        _ = write!(text, "vfio-interrupt-cpus:\t");
        for cpu in self.0.interrupts.lock().cpus() {
            _ = match cpu {
                Some(cpu) => write!(text, "{} ", cpu.0),
                None => write!(text, "- "),
            };
        }
        _ = writeln!(text);
    }

    fn label(&self) -> String {
        String::from("anon_inode:[vfio-device]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
