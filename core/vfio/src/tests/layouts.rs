use core::mem::{offset_of, size_of};

use crate::*;

#[test]
fn layouts_are_those_of_linux() {
    assert_eq!(size_of::<GroupStatus>(), 8);
    assert_eq!(size_of::<DeviceInfo>(), 16);
    assert_eq!(size_of::<RegionInfo>(), 32);
    assert_eq!(offset_of!(RegionInfo, size), 16);
    assert_eq!(size_of::<SparseRegionInfo>(), 64);
    assert_eq!(offset_of!(SparseRegionInfo, id), 32);
    assert_eq!(offset_of!(SparseRegionInfo, nr_areas), 40);
    assert_eq!(offset_of!(SparseRegionInfo, area_offset), 48);
    assert_eq!(size_of::<IrqInfo>(), 16);
    assert_eq!(size_of::<IrqSetHeader>(), 20);
    assert_eq!(size_of::<IommuInfo>(), 24);
    assert_eq!(offset_of!(IommuInfo, cap_offset), 16);
    assert_eq!(size_of::<IovaRanges>(), 16);
    assert_eq!(size_of::<DmaAvailable>(), 12);
    assert_eq!(size_of::<DmaMap>(), 32);
    assert_eq!(size_of::<DmaUnmap>(), 24);
    assert_eq!(size_of::<NvmeAdmin>(), 80);
}

#[test]
fn requests_are_those_of_linux() {
    assert_eq!(numbers::GET_API_VERSION, 0x3b64);
    assert_eq!(numbers::DEVICE_RESET, 0x3b6f);
    assert_eq!(numbers::IOMMU_UNMAP_DMA, 0x3b72);
}

#[test]
fn a_program_with_too_few_bytes_hears_how_many_a_part_takes() {
    let region = RegionInfo {
        flags: numbers::REGION_MMAP,
        size: 0x4000,
        ..RegionInfo::default()
    };
    for (argsz, cap_offset) in [(32, 0), (63, 0), (64, 32), (100, 32)] {
        let sparse = SparseRegionInfo::new(region, 0x1000..0x3000, argsz);
        assert_eq!((sparse.argsz(), sparse.region.cap_offset), (64, cap_offset));
        let both = numbers::REGION_MMAP | numbers::REGION_CAPABILITIES;
        assert_eq!(sparse.region.flags, both);
        assert_eq!((sparse.area_offset, sparse.area_size), (0x1000, 0x2000));
    }
}
