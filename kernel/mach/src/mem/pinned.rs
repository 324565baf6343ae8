//! A page on loan: to packets, with whatever its owner wants dropped with it, or to one device.

use core::ptr::NonNull;

use base::{DeviceAddr, PAGE_BYTES};
use mbuf::ExternalStorage;

use super::page::Page;
use super::remapping::{DmaMemory, NotMapped, reaches_all};

/// A page that packets read (`Mbuf::lent`); `T` is dropped when the last of them is gone.
pub struct Pinned<T> {
    page: Page,
    _with: T,
}

impl<T> Pinned<T> {
    /// `None` for a device's registers, which another device has no business with, and where
    /// an IOMMU translates: to map a page for the time of a packet, and to make the unit forget
    /// it, costs more than to copy it.
    pub fn new(page: Page, with: T) -> Option<Self> {
        let may_be_read = page.is_memory() && reaches_all();
        may_be_read.then_some(Self { page, _with: with })
    }
}

// SAFETY: **Direct** maps the frame for good, and the page, which is not given out, claims it
// until it is dropped. A device's address of RAM is the physical one (`dma`). No `&mut` to a
// page's memory is ever made (**Claim**).
unsafe impl<T: Send + Sync + 'static> ExternalStorage for Pinned<T> {
    fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.page.start(), PAGE_BYTES)
    }

    fn device(&self) -> DeviceAddr {
        DeviceAddr(self.page.phys().0)
    }
}

/// A page that the devices of `DmaMemory` read and write until this is dropped, mapped for them where an IOMMU translates.
pub struct Reached {
    page: Page,
    memory: DmaMemory,
}

impl Reached {
    /// `None` for a device's registers, and if it cannot be mapped, as one that is mapped already.
    pub fn new(page: Page, memory: DmaMemory) -> Option<Self> {
        if !page.is_memory() {
            return None;
        }
        match memory.let_reach(page.phys()) {
            Ok(()) => Some(Self { page, memory }),
            Err(NotMapped::Refused) => None,
            Err(NotMapped::Reachable) => {
                core::mem::forget(page);
                None
            }
        }
    }
}

impl Drop for Reached {
    /// What may still be reached is nobody's for good.
    fn drop(&mut self) {
        if !self.memory.keep_from(self.page.phys()) {
            core::mem::forget(self.page.clone());
        }
    }
}

// SAFETY: as for `Pinned`; the device sees memory where it lies (`DmaMapper`).
unsafe impl ExternalStorage for Reached {
    fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.page.start(), PAGE_BYTES)
    }

    fn device(&self) -> DeviceAddr {
        DeviceAddr(self.page.phys().0)
    }
}
