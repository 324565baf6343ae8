//! What programs pass (include/uapi/linux/vfio.h). Each begins with the bytes that the program has
//! (`argsz`); `BYTES_MIN` of them are always needed.

use core::ops::Range;

use crate::numbers;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A structure that begins with how many bytes the program has.
pub trait Argument: FromBytes + IntoBytes + Immutable {
    /// Bytes without which it makes no sense.
    const BYTES_MIN: usize;

    /// What the program said.
    fn argsz(&self) -> u32;
}

macro_rules! argument {
    ($name:ident, $bytes_min:expr) => {
        impl Argument for $name {
            const BYTES_MIN: usize = $bytes_min;

            fn argsz(&self) -> u32 {
                self.argsz
            }
        }
    };
}

/// `struct vfio_group_status`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GroupStatus {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `GROUP_*`.
    pub flags: u32,
}
argument!(GroupStatus, 8);

/// `struct vfio_device_info` up to its capabilities, which we have none of.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DeviceInfo {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `DEVICE_*`.
    pub flags: u32,
    /// The highest region's number and one.
    pub num_regions: u32,
    /// The same of kinds of interrupts.
    pub num_irqs: u32,
}
argument!(DeviceInfo, 16);

/// `struct vfio_region_info`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RegionInfo {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `REGION_*`.
    pub flags: u32,
    /// Which region.
    pub index: u32,
    /// Where capabilities begin; 0 without.
    pub cap_offset: u32,
    /// Bytes.
    pub size: u64,
    /// Where it begins in the device's file.
    pub offset: u64,
}
argument!(RegionInfo, 32);

/// `struct vfio_region_info` of a region of which only one part may be mapped, and the capability that says so:
/// `struct vfio_region_info_cap_sparse_mmap`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SparseRegionInfo {
    /// The region.
    pub region: RegionInfo,
    /// `REGION_CAP_SPARSE_MMAP`.
    pub id: u16,
    /// Of the capability: 1.
    pub version: u16,
    /// Where the next capability begins; there is none.
    pub next: u32,
    /// How many parts: 1.
    pub nr_areas: u32,
    /// Zero.
    pub reserved: u32,
    /// Where in the region the part begins.
    pub area_offset: u64,
    /// Its bytes.
    pub area_size: u64,
}

impl Argument for SparseRegionInfo {
    const BYTES_MIN: usize = RegionInfo::BYTES_MIN;

    fn argsz(&self) -> u32 {
        self.region.argsz
    }
}

impl SparseRegionInfo {
    /// A region of which `area` may be mapped, as it is told to a program that has `argsz` bytes: one that has too few
    /// hears how many it takes.
    pub fn new(region: RegionInfo, area: Range<u64>, argsz: u32) -> Self {
        let needed = size_of::<Self>() as u32;
        let cap_offset = match argsz >= needed {
            true => size_of::<RegionInfo>() as u32,
            false => 0,
        };
        Self {
            region: RegionInfo {
                argsz: needed,
                flags: region.flags | numbers::REGION_CAPABILITIES,
                cap_offset,
                ..region
            },
            id: numbers::REGION_CAP_SPARSE_MMAP,
            version: 1,
            nr_areas: 1,
            area_offset: area.start,
            area_size: area.end - area.start,
            ..Self::default()
        }
    }
}

/// `struct vfio_irq_info`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IrqInfo {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `IRQ_*`.
    pub flags: u32,
    /// Which kind.
    pub index: u32,
    /// How many of it.
    pub count: u32,
}
argument!(IrqInfo, 16);

/// `struct vfio_irq_set` without what follows.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IrqSetHeader {
    /// Bytes that the program has, with what follows.
    pub argsz: u32,
    /// What follows, and what is to be done.
    pub flags: u32,
    /// Which kind.
    pub index: u32,
    /// The first of it.
    pub start: u32,
    /// How many.
    pub count: u32,
}
argument!(IrqSetHeader, 20);

/// `struct vfio_iommu_type1_info`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IommuInfo {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `IOMMU_*`.
    pub flags: u32,
    /// A bit for each size of pages.
    pub iova_pgsizes: u64,
    /// Where capabilities begin.
    pub cap_offset: u32,
    /// To the next word.
    pub padding: u32,
}
argument!(IommuInfo, 16);

/// A capability that lists usable addresses, without them.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IovaRanges {
    /// `CAPABILITY_IOVA_RANGES`.
    pub id: u16,
    /// 1.
    pub version: u16,
    /// Where the next capability begins.
    pub next: u32,
    /// How many ranges follow.
    pub nr_iovas: u32,
    /// 0.
    pub reserved: u32,
}

/// One of them: the first and the last address.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IovaRange {
    /// The first address.
    pub start: u64,
    /// The last address.
    pub end: u64,
}

/// A capability that says how many more mappings there may be.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DmaAvailable {
    /// `CAPABILITY_DMA_AVAILABLE`.
    pub id: u16,
    /// 1.
    pub version: u16,
    /// 0: it is the last.
    pub next: u32,
    /// How many.
    pub avail: u32,
}

/// `struct vfio_iommu_type1_dma_map`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DmaMap {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `MAP_*`.
    pub flags: u32,
    /// Where the program has the memory.
    pub vaddr: u64,
    /// Where the device is to see it.
    pub iova: u64,
    /// Bytes.
    pub size: u64,
}
argument!(DmaMap, 32);

/// `struct vfio_iommu_type1_dma_unmap`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DmaUnmap {
    /// Bytes that the program has.
    pub argsz: u32,
    /// `UNMAP_*`.
    pub flags: u32,
    /// Where the device sees it.
    pub iova: u64,
    /// Bytes; then how many were unmapped.
    pub size: u64,
}
argument!(DmaUnmap, 24);

/// An admin command for an NVMe controller whose admin queue the kernel keeps, and how it ended.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NvmeAdmin {
    /// Bytes that the program has.
    pub argsz: u32,
    /// Told: the status field without the phase; 0 for success.
    pub status: u32,
    /// The submission, of which the identifier is the kernel's.
    pub command: [u64; 8],
    /// Told: the first word of the completion.
    pub result: u32,
    /// 0.
    pub reserved: u32,
}
argument!(NvmeAdmin, 80);
