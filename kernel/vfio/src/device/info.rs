//! What a program is told of a device: its regions and its kinds of interrupts.

use core::ops::Range;

use base::{PAGE_BYTES, PhysAddr};
use pci::BARS;
use sync::{Error, Result};
use vfio::{DeviceInfo, IrqInfo, RegionInfo, SparseRegionInfo, numbers};

use super::Device;
use crate::argument;

/// Bytes of configuration space that mechanism #1 reaches.
pub const CONFIG_BYTES: u64 = 256;

/// A part of a device's file.
pub enum Region {
    Bar(usize),
    Rom,
    Config,
    None,
}

impl Region {
    fn of(index: u64) -> Self {
        match index {
            bar if bar < BARS as u64 => Self::Bar(bar as usize),
            rom if rom == numbers::REGION_ROM.into() => Self::Rom,
            config if config == numbers::REGION_CONFIG.into() => Self::Config,
            _ => Self::None,
        }
    }

    /// The region at an offset of the file, and where in it.
    pub fn at(offset: u64) -> (Self, u64) {
        let index = offset >> numbers::REGION_SHIFT;
        (Self::of(index), offset - (index << numbers::REGION_SHIFT))
    }
}

/// Where a region begins in the file.
pub fn offset_of(index: u32) -> u64 {
    u64::from(index) << numbers::REGION_SHIFT
}

impl Device {
    /// What a program may map of a base address, and where that begins: whole pages, up to that in which the table of MSI-X
    /// begins, and of registers of which the kernel keeps some the others.
    pub(super) fn mappable(&self, index: usize) -> Option<(PhysAddr, Range<u64>)> {
        let bar = (*self.shape().function.bars().get(index)?)?;
        let is_paged = (bar.start.0 | bar.bytes as u64).is_multiple_of(PAGE_BYTES as u64);
        let table = self.shape().msix.as_ref();
        let table = table.filter(|table| table.bar == index);
        let bytes = table.map_or(bar.bytes, |table| {
            table.bytes.start / PAGE_BYTES * PAGE_BYTES
        });
        let area = self.first_writable(index) as u64..bytes as u64;
        (is_paged && !area.is_empty()).then_some((bar.start, area))
    }

    /// How many interrupts there are of a kind; `None` if there is no such kind.
    pub(super) fn irq_count(&self, index: u32) -> Option<u32> {
        let shape = self.shape();
        match index {
            numbers::IRQ_LINE => Some(0),
            numbers::IRQ_MSI => Some(shape.msi.is_some().into()),
            numbers::IRQ_MSIX => Some(shape.msix.as_ref().map_or(0, |table| table.entries.into())),
            numbers::IRQ_ERROR | numbers::IRQ_REQUEST => Some(1),
            _ => None,
        }
    }
}

/// VFIO_DEVICE_GET_INFO.
pub fn device(device: &Device, at: u64) -> Result<usize> {
    let mut info: DeviceInfo = argument::read(at)?;
    info.flags = numbers::DEVICE_PCI;
    if device.shape().reset.is_some() {
        info.flags |= numbers::DEVICE_RESETS;
    }
    info.num_regions = numbers::REGIONS;
    info.num_irqs = numbers::IRQS;
    argument::write(at, &info, info.argsz)?;
    Ok(0)
}

/// VFIO_DEVICE_GET_REGION_INFO.
pub fn region(device: &Device, at: u64) -> Result<usize> {
    let mut info: RegionInfo = argument::read(at)?;
    let region = Region::of(info.index.into());
    let (size, flags) = match region {
        Region::Bar(index) => bar(device, index),
        Region::Config => (CONFIG_BYTES, numbers::REGION_READ | numbers::REGION_WRITE),
        Region::Rom => (0, 0),
        Region::None => return Err(Error::Invalid),
    };
    info.size = size;
    info.flags = flags;
    info.cap_offset = 0;
    info.offset = offset_of(info.index);
    let argsz = info.argsz;
    let part = match region {
        Region::Bar(index) => device.mappable(index),
        _ => None,
    };
    match part.map(|(_, area)| area) {
        Some(area) if area != (0..size) => {
            let sparse = SparseRegionInfo::new(info, area, argsz);
            argument::write(at, &sparse, argsz)?;
        }
        _ => argument::write(at, &info, argsz)?,
    }
    Ok(0)
}

fn bar(device: &Device, index: usize) -> (u64, u32) {
    let both = numbers::REGION_READ | numbers::REGION_WRITE;
    match (device.shape().bar(index), device.mappable(index)) {
        (None, _) => (0, 0),
        (Some(registers), None) => (registers.bytes() as u64, both),
        (Some(registers), Some(_)) => (registers.bytes() as u64, both | numbers::REGION_MMAP),
    }
}

/// VFIO_DEVICE_GET_IRQ_INFO.
pub fn irq(device: &Device, at: u64) -> Result<usize> {
    let mut info: IrqInfo = argument::read(at)?;
    info.count = device.irq_count(info.index).ok_or(Error::Invalid)?;
    info.flags = numbers::IRQ_EVENTFD;
    if info.index != numbers::IRQ_MSIX {
        info.flags |= numbers::IRQ_NORESIZE;
    }
    argument::write(at, &info, info.argsz)?;
    Ok(0)
}
