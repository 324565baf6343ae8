//! A PCI function that the kernel has given to the program.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use hal::Mmio;
use hal::pci::PciFunction;
use mbuf::FreeList;
use rustix::io::{Errno, pread, pwrite};

use super::abi;
use super::interrupt::Interrupt;
use super::memory::{self, BlocksForDevice, DeviceMemory};
use crate::mapping::Mapping;

/// A function of the program's. It is the kernel's again when it is dropped and its registers are mapped no more,
/// which is when the program ends.
pub struct Function {
    container: OwnedFd,
    /// Keeps the group the program's.
    group: OwnedFd,
    device: OwnedFd,
    /// Where the configuration space is read.
    config: u64,
}

impl Function {
    /// Takes the function at `name`, as in /sys/bus/pci/devices: `0000:00:05.0`.
    ///
    /// Errors: those of the system: `NotFound` without an IOMMU or such a function, `PermissionDenied`,
    /// `ResourceBusy` if the kernel or another program has it.
    pub fn open(name: &str) -> io::Result<Self> {
        let group = open(&Path::new("/dev/vfio").join(group_of(name)?))?;
        if status(&group)? & abi::GROUP_VIABLE == 0 {
            return Err(Errno::BUSY.into());
        }
        let container = open(Path::new("/dev/vfio/vfio"))?;
        // SAFETY: it takes the container's number in a word.
        unsafe {
            abi::set::<{ abi::GROUP_SET_CONTAINER }, i32>(group.as_fd(), container.as_raw_fd())
        }?;
        set_iommu(&container)?;
        let device = abi::device(&group, &CString::new(name)?)?;
        let config = region(&device, abi::CONFIG_REGION)?.region.offset;
        Ok(Self {
            container,
            group,
            device,
            config,
        })
    }

    /// Memory that the device and the program share: for rings, and so many packet buffers, of which `reserve`
    /// are for what passes through. Once.
    ///
    /// Errors: those of the system; the memory is pinned (RLIMIT_MEMLOCK).
    pub fn memory(
        &self,
        buffers: usize,
        reserve: usize,
    ) -> io::Result<(DeviceMemory, &'static FreeList)> {
        memory::share(self.container.as_fd(), buffers, reserve)
    }

    /// Memory that the device and the program share: for rings, and so many bytes for blocks. Once.
    ///
    /// Errors: those of the system; the memory is pinned (RLIMIT_MEMLOCK).
    pub fn block_memory(&self, bytes: usize) -> io::Result<(DeviceMemory, BlocksForDevice)> {
        memory::share_blocks(self.container.as_fd(), bytes)
    }

    /// A word of a base address' registers; ones if it cannot be read.
    pub fn register(&self, bar: u8, at: usize) -> u32 {
        let mut word = [0; 4];
        let offset = region(&self.device, bar.into()).map(|info| info.region.offset);
        match offset.and_then(|offset| Ok(pread(&self.device, &mut word, offset + at as u64)?)) {
            Ok(4) => u32::from_le_bytes(word),
            _ => u32::MAX,
        }
    }

    /// What of a base address may be mapped, from byte `first` on, which is where that begins.
    pub fn bar_from(&self, index: u8, first: u64) -> Option<Mmio> {
        let info = region(&self.device, index.into()).ok()?;
        if info.region.flags & abi::REGION_MAPPED == 0 {
            return None;
        }
        let area = info.mapped().filter(|area| area.start == first)?;
        let bytes = usize::try_from(area.end - area.start).ok()?;
        let at = info.region.offset.checked_add(first)?;
        let registers = Mapping::shared(self.device.as_fd(), bytes, at).ok()?;
        let start = registers.start();
        // Drivers keep pieces of it for as long as they like.
        std::mem::forget(registers);
        // SAFETY: hal's WINDOW: registers, mapped for as long as the program lives, on whole pages.
        Some(unsafe { Mmio::new(start, bytes) })
    }

    /// Has the kernel bring an NVMe controller up, or down, whose admin queue it keeps.
    ///
    /// Errors: those of the system.
    pub fn enable_nvme(&self, is_on: bool) -> io::Result<()> {
        // SAFETY: it takes the number itself.
        let on = unsafe {
            rustix::ioctl::IntegerSetter::<{ abi::DEVICE_NVME_ENABLE }>::new_usize(is_on.into())
        };
        // SAFETY: as above.
        unsafe { rustix::ioctl::ioctl(&self.device, on) }?;
        Ok(())
    }

    /// Has the kernel send such a controller an admin command; its status field without the phase, and the first word of its
    /// completion.
    ///
    /// Errors: those of the system; `PermissionDenied` for commands that no program may send.
    pub fn nvme_admin(&self, command: [u64; 8]) -> io::Result<(u16, u32)> {
        let mut asked = abi::NvmeAdmin {
            bytes: abi::bytes_of::<abi::NvmeAdmin>(),
            command,
            ..abi::NvmeAdmin::default()
        };
        // SAFETY: it takes such a block.
        unsafe { abi::update::<{ abi::DEVICE_NVME_ADMIN }, _>(self.device.as_fd(), &mut asked) }?;
        Ok((asked.status as u16, asked.result))
    }

    /// What it holds of the system, for programs that close what they do not know.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [&self.container, &self.group, &self.device].map(AsFd::as_fd)
    }

    /// The interrupt that entry 0 of its MSI-X table raises.
    pub fn interrupt(&self) -> io::Result<Interrupt> {
        Interrupt::new(self.device.as_fd(), abi::MSIX)
    }

    /// Whether entry 0 of its MSI-X table raises the interrupt from now on, or nothing. What was raised meanwhile is
    /// raised when it leads somewhere again.
    pub fn lead(&self, interrupt: &Interrupt, is_raised: bool) -> io::Result<()> {
        interrupt.lead(self.device.as_fd(), abi::MSIX, is_raised)
    }

    /// What comes when the administrator has taken it away.
    pub fn revocation(&self) -> io::Result<Interrupt> {
        Interrupt::new(self.device.as_fd(), abi::REQUEST)
    }
}

/// The name of the group: the number that a link of the function's folder ends with.
fn group_of(name: &str) -> io::Result<String> {
    let link = fs::read_link(format!("/sys/bus/pci/devices/{name}/iommu_group")).map_err(|error| {
        let reason = "no program may have it: there is no such function, or no IOMMU before it (--iommu)";
        io::Error::new(error.kind(), reason)
    })?;
    let number = link.file_name().and_then(|name| name.to_str());
    number
        .map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let file = File::options().read(true).write(true).open(path)?;
    Ok(file.into())
}

fn status(group: &OwnedFd) -> io::Result<u32> {
    let mut status = abi::GroupStatus {
        bytes: abi::bytes_of::<abi::GroupStatus>(),
        flags: 0,
    };
    // SAFETY: it takes such a block.
    unsafe { abi::update::<{ abi::GROUP_GET_STATUS }, _>(group.as_fd(), &mut status) }?;
    Ok(status.flags)
}

fn set_iommu(container: &OwnedFd) -> io::Result<()> {
    // SAFETY: it takes the number itself.
    let kind = unsafe {
        rustix::ioctl::IntegerSetter::<{ abi::SET_IOMMU }>::new_usize(abi::TYPE1V2_IOMMU as usize)
    };
    // SAFETY: as above.
    unsafe { rustix::ioctl::ioctl(container, kind) }?;
    Ok(())
}

fn region(device: &OwnedFd, index: u32) -> io::Result<abi::SparseRegionInfo> {
    let mut info = abi::SparseRegionInfo::of(index);
    // SAFETY: it takes such a block.
    unsafe { abi::update::<{ abi::DEVICE_GET_REGION_INFO }, _>(device.as_fd(), &mut info) }?;
    Ok(info)
}

impl PciFunction for Function {
    /// All ones, as of a function that is not there, if it cannot be read.
    fn config_read(&self, offset: u16) -> u32 {
        let mut word = [0; 4];
        match pread(&self.device, &mut word, self.config + u64::from(offset)) {
            Ok(4) => u32::from_le_bytes(word),
            _ => u32::MAX,
        }
    }

    fn config_write(&self, offset: u16, value: u32) {
        // What the kernel does not take is not the program's to write.
        let at = self.config + u64::from(offset);
        let _ = pwrite(&self.device, &value.to_le_bytes(), at);
    }

    /// As much of it as may be mapped: the table of MSI-X and what is behind it is missing.
    fn bar(&self, index: u8) -> Option<Mmio> {
        self.bar_from(index, 0)
    }
}
