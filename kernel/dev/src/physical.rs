//! mem: physical addresses, of devices only (mem(4)).
//!
//! A mapping is refused for any frame that the allocator knows, in use or free, and
//! permitted only inside a base address of a PCI function without a driver. There is
//! nothing to read or write: Linux with `lockdown` says the same.

use alloc::sync::Arc;
use core::ops::Range;

use base::{PAGE_BYTES, PhysAddr};
use cred::Capability;
use hal::caching::Caching;
use mach::mem::Page;
use mm::io::{Sink, Source};
use mm::{FaultError, MemoryObject, Sharing};
use sync::{Error, Result};

use vfs::devices::{Device, register as add};
use vfs::file::{File, OpenFile};

/// Adds /dev/mem.
pub fn register() {
    add(Device {
        name: "mem",
        major: 1,
        minors: (1, 1),
        mode: 0o640,
        open: |_, _| {
            let credentials = cred::credentials().get();
            credentials.require(Capability::SysRawio)?;
            Ok(Arc::new(Physical))
        },
    });
}

struct Physical;

impl File for Physical {
    fn read_at(&self, _open: &OpenFile, _offset: u64, _to: &mut Sink<'_>) -> Result<usize> {
        Err(Error::NotPermitted)
    }

    fn write_at(&self, _open: &OpenFile, _offset: u64, _from: &mut Source<'_>) -> Result<usize> {
        Err(Error::NotPermitted)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let end = range.end.checked_next_multiple_of(PAGE_BYTES as u64);
        let bytes = end.ok_or(Error::Invalid)? - range.start;
        let owner = pci::owner_of(PhysAddr(range.start), bytes).ok_or(Error::NotPermitted)?;
        if owner.is_driven() {
            return Err(Error::NotPermitted);
        }
        Window::open(PhysAddr(0), 0, range, is_shared, Caching::Uncached)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// A range of a device's addresses, as bytes of a file.
pub struct Window {
    base: PhysAddr,
    /// The byte of the file that is at `base`.
    first: u64,
    end: u64,
    caching: Caching,
}

impl Window {
    /// The bytes `range` of a file of which byte `first` is at `base`, which begin pages.
    ///
    /// Errors: `Invalid` for a private mapping, `NotPermitted` if a page of it is RAM or
    /// lies where no device is mapped.
    pub fn open(
        base: PhysAddr,
        first: u64,
        range: Range<u64>,
        is_shared: bool,
        caching: Caching,
    ) -> Result<Arc<dyn MemoryObject>> {
        if !is_shared {
            return Err(Error::Invalid);
        }
        let window = Self {
            base,
            first,
            end: range.end,
            caching,
        };
        let page = PAGE_BYTES as u64;
        let mut indices = range.start / page..range.end.div_ceil(page);
        match indices.all(|index| window.device_page(index).is_some()) {
            true => Ok(Arc::new(window)),
            false => Err(Error::NotPermitted),
        }
    }

    fn device_page(&self, index: u64) -> Option<Page> {
        let offset = index.checked_mul(PAGE_BYTES as u64)?;
        let offset = offset.checked_sub(self.first)?;
        Page::of_device(self.base.checked_add(offset)?)
    }
}

impl MemoryObject for Window {
    fn page(&self, index: u64, _: Sharing) -> core::result::Result<Page, FaultError> {
        let is_inside = index < self.end.div_ceil(PAGE_BYTES as u64);
        let page = self.device_page(index).filter(|_| is_inside);
        page.ok_or(FaultError::Bus)
    }

    fn size(&self) -> u64 {
        self.end
    }

    fn caching(&self) -> Caching {
        self.caching
    }

    fn label(&self) -> &'static str {
        "/dev/mem"
    }
}
