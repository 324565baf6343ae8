//! What a container tells of its IOMMU (VFIO_IOMMU_GET_INFO): sizes of pages, and, for who has the
//! room, which addresses can be used and how many more mappings there may be.

use alloc::vec::Vec;

use base::VirtAddr;
use mm::user;
use sync::Result;
use vfio::{DmaAvailable, IommuInfo, IovaRanges, numbers, usable};
use zerocopy::IntoBytes;

use super::Container;
use crate::argument;

/// Pages of 4 KiB and of 2 MiB.
const PAGE_SIZES: u64 = 1 << 12 | 1 << 21;

impl Container {
    pub(super) fn tell_info(&self, at: u64) -> Result<usize> {
        let mut info: IommuInfo = argument::read(at)?;
        let argsz = info.argsz;
        let capabilities = self.capabilities()?;
        let offset = size_of::<IommuInfo>();
        let wanted = (offset + capabilities.len()) as u32;
        info.flags = numbers::IOMMU_PAGE_SIZES | numbers::IOMMU_CAPABILITIES;
        info.iova_pgsizes = PAGE_SIZES;
        match argsz >= wanted {
            true => {
                let to = at.saturating_add(offset as u64);
                user::copy_out(&capabilities, VirtAddr(to))?;
                info.cap_offset = offset as u32;
            }
            false => info.argsz = wanted,
        }
        argument::write(at, &info, argsz)?;
        Ok(0)
    }

    fn capabilities(&self) -> Result<Vec<u8>> {
        let (limit, available) = self.with(|dma, lent| {
            let limits = lent.iter().map(|lent| lent.limit());
            Ok((limits.min().unwrap_or(0), dma.mappings.available()))
        })?;
        let ranges = usable(limit);
        let header = IovaRanges {
            id: numbers::CAPABILITY_IOVA_RANGES,
            version: 1,
            next: (size_of::<IommuInfo>() + size_of::<IovaRanges>() + size_of_val(&ranges)) as u32,
            nr_iovas: ranges.len() as u32,
            reserved: 0,
        };
        let available = DmaAvailable {
            id: numbers::CAPABILITY_DMA_AVAILABLE,
            version: 1,
            next: 0,
            avail: available as u32,
        };
        Ok([header.as_bytes(), ranges.as_bytes(), available.as_bytes()].concat())
    }
}
