//! What `linux/vfio.h` says: requests, and the blocks that they point to.

use std::ffi::{CStr, c_void};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter, Updater, ioctl};

/// `_IO(';', 100 + number)`: the direction is not told.
const fn request(number: u32) -> Opcode {
    (0x3b << 8 | (100 + number)) as Opcode
}

pub const SET_IOMMU: Opcode = request(2);
pub const GROUP_GET_STATUS: Opcode = request(3);
pub const GROUP_SET_CONTAINER: Opcode = request(4);
const GROUP_GET_DEVICE_FD: Opcode = request(6);
pub const DEVICE_GET_REGION_INFO: Opcode = request(8);
pub const DEVICE_SET_IRQS: Opcode = request(10);
pub const IOMMU_MAP_DMA: Opcode = request(13);
/// Of Sietch alone: the controller is to be up (1) or down (0), and an admin command.
pub const DEVICE_NVME_ENABLE: Opcode = request(100);
pub const DEVICE_NVME_ADMIN: Opcode = request(101);

/// Second version of the model with one table for each container.
pub const TYPE1V2_IOMMU: u32 = 3;
/// Of a group: all of its functions may be taken.
pub const GROUP_VIABLE: u32 = 1 << 0;
/// Of a region: it may be mapped.
pub const REGION_MAPPED: u32 = 1 << 2;
/// Of a region: the capability that says which parts may be mapped.
const SPARSE_MMAP: u16 = 1;
/// The region of the configuration space; those below 6 are base addresses.
pub const CONFIG_REGION: u32 = 7;
/// The interrupts of the function's MSI-X table.
pub const MSIX: u32 = 2;
/// The index of what is raised when the administrator takes the device away.
pub const REQUEST: u32 = 4;
/// An eventfd for each interrupt follows, which is to be signalled.
pub const IRQS_TO_EVENTFD: u32 = 1 << 2 | 1 << 5;
/// In the place of an eventfd: the interrupt leads nowhere.
pub const NO_EVENTFD: i32 = -1;
/// The device reads and writes the memory.
pub const MAP_READ_WRITE: u32 = 1 << 0 | 1 << 1;

/// Blocks begin with their own length.
pub const fn bytes_of<T>() -> u32 {
    size_of::<T>() as u32
}

#[repr(C)]
pub struct GroupStatus {
    pub bytes: u32,
    pub flags: u32,
}

#[derive(Default)]
#[repr(C)]
pub struct RegionInfo {
    pub bytes: u32,
    pub flags: u32,
    pub index: u32,
    pub capabilities_at: u32,
    pub region_bytes: u64,
    pub offset: u64,
}

/// A region, and room for one capability: which part of it may be mapped.
#[derive(Default)]
#[repr(C)]
pub struct SparseRegionInfo {
    pub region: RegionInfo,
    capability: u16,
    version: u16,
    next: u32,
    areas: u32,
    reserved: u32,
    area_offset: u64,
    area_bytes: u64,
}

impl SparseRegionInfo {
    /// A question for a region.
    pub fn of(index: u32) -> Self {
        Self {
            region: RegionInfo {
                bytes: bytes_of::<Self>(),
                index,
                ..RegionInfo::default()
            },
            ..Self::default()
        }
    }

    /// Which bytes of it may be mapped; `None` if there are none.
    pub fn mapped(&self) -> Option<Range<u64>> {
        let here = size_of::<RegionInfo>() as u32;
        let is_whole = self.region.capabilities_at == 0;
        let is_part = self.region.capabilities_at == here
            && self.capability == SPARSE_MMAP
            && self.areas == 1;
        let area = match is_part {
            true => self.area_offset..self.area_offset.checked_add(self.area_bytes)?,
            false if is_whole => 0..self.region.region_bytes,
            false => 0..0,
        };
        (!area.is_empty()).then_some(area)
    }
}

/// An admin command of NVMe, and how it ended.
#[derive(Default)]
#[repr(C)]
pub struct NvmeAdmin {
    pub bytes: u32,
    pub status: u32,
    pub command: [u64; 8],
    pub result: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct IrqSet {
    pub bytes: u32,
    pub flags: u32,
    pub index: u32,
    pub start: u32,
    pub count: u32,
    pub eventfd: i32,
}

#[repr(C)]
pub struct MapDma {
    pub bytes: u32,
    pub flags: u32,
    pub address: u64,
    pub device_address: u64,
    pub mapped_bytes: u64,
}

/// Asks for what fills `block`.
///
/// # Safety
/// `REQUEST` takes a block of this type.
pub unsafe fn update<const REQUEST: Opcode, T>(
    file: BorrowedFd<'_>,
    block: &mut T,
) -> io::Result<()> {
    // SAFETY: the caller vouches for the type.
    unsafe { ioctl(file, Updater::<REQUEST, T>::new(block)) }?;
    Ok(())
}

/// Tells `block`.
///
/// # Safety
/// `REQUEST` takes a block of this type.
pub unsafe fn set<const REQUEST: Opcode, T>(file: BorrowedFd<'_>, block: T) -> io::Result<()> {
    // SAFETY: the caller vouches for the type.
    unsafe { ioctl(file, Setter::<REQUEST, T>::new(block)) }?;
    Ok(())
}

/// The function of this name of a group.
pub fn device(group: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the request takes a string and returns a descriptor.
    Ok(unsafe { ioctl(group, GetDevice(name)) }?)
}

struct GetDevice<'a>(&'a CStr);

// SAFETY: the opcode reads a string, and its result is a new descriptor that is nobody else's.
unsafe impl Ioctl for GetDevice<'_> {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        GROUP_GET_DEVICE_FD
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }

    unsafe fn output_from_ptr(
        descriptor: IoctlOutput,
        _: *mut c_void,
    ) -> rustix::io::Result<OwnedFd> {
        // SAFETY: as above.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}
