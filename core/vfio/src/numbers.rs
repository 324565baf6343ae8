//! The numbers of include/uapi/linux/vfio.h that are known here.

/// `_IO(';', 100 + number)`.
const fn request(number: u32) -> u32 {
    0x3b64 + number
}

/// Requests to containers.
pub const GET_API_VERSION: u32 = request(0);
/// Argument: one of the extensions below.
pub const CHECK_EXTENSION: u32 = request(1);
/// Argument: one of the kinds of IOMMU below.
pub const SET_IOMMU: u32 = request(2);
/// Requests to groups. Argument: [`crate::GroupStatus`].
pub const GROUP_GET_STATUS: u32 = request(3);
/// Argument: where a descriptor stands.
pub const GROUP_SET_CONTAINER: u32 = request(4);
/// Without argument.
pub const GROUP_UNSET_CONTAINER: u32 = request(5);
/// Argument: a device's name.
pub const GROUP_GET_DEVICE_FD: u32 = request(6);
/// Requests to devices. Argument: [`crate::DeviceInfo`].
pub const DEVICE_GET_INFO: u32 = request(7);
/// Argument: [`crate::RegionInfo`].
pub const DEVICE_GET_REGION_INFO: u32 = request(8);
/// Argument: [`crate::IrqInfo`].
pub const DEVICE_GET_IRQ_INFO: u32 = request(9);
/// Argument: [`crate::IrqSetHeader`] and what follows.
pub const DEVICE_SET_IRQS: u32 = request(10);
/// Without argument.
pub const DEVICE_RESET: u32 = request(11);
/// Requests to containers with an IOMMU. Argument: [`crate::IommuInfo`].
pub const IOMMU_GET_INFO: u32 = request(12);
/// Argument: [`crate::DmaMap`].
pub const IOMMU_MAP_DMA: u32 = request(13);
/// Argument: [`crate::DmaUnmap`].
pub const IOMMU_UNMAP_DMA: u32 = request(14);

/// Requests to devices that Linux does not have: the kernel keeps the admin queue of an NVMe controller. Argument: 1 to
/// bring it up with a new one, 0 to take it down.
pub const DEVICE_NVME_ENABLE: u32 = request(100);
/// Argument: [`crate::NvmeAdmin`].
pub const DEVICE_NVME_ADMIN: u32 = request(101);

/// What GET_API_VERSION answers.
pub const API_VERSION: usize = 0;

/// Extensions, of which the first two are kinds of IOMMU.
pub const TYPE1: u64 = 1;
/// Unmapping takes whole mappings.
pub const TYPE1_V2: u64 = 3;
/// No IOMMU at all.
pub const NOIOMMU: u64 = 8;
/// UNMAP_ALL is known.
pub const UNMAP_ALL: u64 = 9;

/// Flags of [`crate::GroupStatus`].
pub const GROUP_VIABLE: u32 = 1 << 0;
/// A container is set.
pub const GROUP_CONTAINER_SET: u32 = 1 << 1;

/// Flags of [`crate::DeviceInfo`].
pub const DEVICE_RESETS: u32 = 1 << 0;
/// A PCI function.
pub const DEVICE_PCI: u32 = 1 << 1;

/// Regions of a PCI function: six base addresses, then these.
pub const REGION_ROM: u32 = 6;
/// Configuration space.
pub const REGION_CONFIG: u32 = 7;
/// VGA's ranges, which are none here.
pub const REGIONS: u32 = 9;
/// A region's number stands in an offset from this bit on.
pub const REGION_SHIFT: u32 = 40;

/// Flags of [`crate::RegionInfo`].
pub const REGION_READ: u32 = 1 << 0;
/// It can be written.
pub const REGION_WRITE: u32 = 1 << 1;
/// It can be mapped.
pub const REGION_MMAP: u32 = 1 << 2;
/// Capabilities follow.
pub const REGION_CAPABILITIES: u32 = 1 << 3;
/// The capability that names what of a region can be mapped.
pub const REGION_CAP_SPARSE_MMAP: u16 = 1;

/// Kinds of interrupts of a PCI function.
pub const IRQ_LINE: u32 = 0;
/// Message signalled.
pub const IRQ_MSI: u32 = 1;
/// Message signalled, by a table.
pub const IRQ_MSIX: u32 = 2;
/// Something went wrong.
pub const IRQ_ERROR: u32 = 3;
/// The device is wanted back.
pub const IRQ_REQUEST: u32 = 4;
/// How many kinds there are.
pub const IRQS: u32 = 5;

/// Flags of [`crate::IrqInfo`].
pub const IRQ_EVENTFD: u32 = 1 << 0;
/// All of a kind are set up at once.
pub const IRQ_NORESIZE: u32 = 1 << 3;

/// Flags of [`crate::IommuInfo`].
pub const IOMMU_PAGE_SIZES: u32 = 1 << 0;
/// Capabilities follow.
pub const IOMMU_CAPABILITIES: u32 = 1 << 1;
/// The capability that names usable addresses.
pub const CAPABILITY_IOVA_RANGES: u16 = 1;
/// The one that says how many mappings are left.
pub const CAPABILITY_DMA_AVAILABLE: u16 = 3;

/// Flags of [`crate::DmaMap`].
pub const MAP_READ: u32 = 1 << 0;
/// The device may write.
pub const MAP_WRITE: u32 = 1 << 1;
/// Of [`crate::DmaUnmap`].
pub const UNMAP_FLAG_ALL: u32 = 1 << 1;
