//! phys_contiguous: physically contiguous memory for programs that drive a device.
//!
//! The first mapping of an open file makes the memory, with its length; it lives as long as
//! it is mapped by anybody and goes back by itself. `MAP_SHARED` only: a private copy
//! would be somewhere else. Up to 4 MiB at once, zeroed, aligned to its size rounded up
//! to a power of two; what rounding takes too much is given back.
//!
//! | request | argument | does |
//! |---|---|---|
//! | `PHYS_CONTIGUOUS_ADDRESS` | a `u64` to fill | tells the memory's physical address; needs CAP_SYS_RAWIO |
//! | `PHYS_CONTIGUOUS_CACHING` | 0, 1, 2 | write-back, write-combining or uncached, before the first mapping; an open file with `O_SYNC` begins uncached |

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, PhysAddr, VirtAddr};
use cred::Capability;
use hal::DmaRequest;
use hal::caching::Caching;
use mach::mem::{Page, contiguous_pages};
use mach::sync::Spin;
use mm::user;
use mm::{FaultError, MemoryObject, Sharing};
use sync::{Error, Result};

use vfs::devices::{Device, register as add};
use vfs::file::{File, FileRef, OpenFile, StatusFlags};

/// Linux's major number of miscellaneous devices, and a minor from its dynamic range.
const MAJOR: u32 = 10;
const MINOR: u32 = 240;

/// `_IOR('p', 0x40, u64)` and `_IO('p', 0x41)`.
const PHYS_CONTIGUOUS_ADDRESS: u32 = 0x8008_7040;
const PHYS_CONTIGUOUS_CACHING: u32 = 0x7041;

/// Adds /dev/phys_contiguous.
pub fn register() {
    add(Device {
        name: "phys_contiguous",
        major: MAJOR,
        minors: (MINOR, MINOR),
        mode: 0o600,
        open,
    });
}

fn open(_number: u64, status: StatusFlags) -> Result<FileRef> {
    let caching = if status.contains(StatusFlags::DSYNC) {
        Caching::Uncached
    } else {
        Caching::WriteBack
    };
    Ok(Arc::new(Region(Spin::new(State {
        caching,
        memory: Weak::new(),
    }))))
}

struct Region(Spin<State>);

struct State {
    caching: Caching,
    memory: Weak<Contiguous>,
}

impl File for Region {
    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        if !is_shared {
            return Err(Error::Invalid);
        }
        let mut state = self.0.lock();
        let memory = match state.memory.upgrade() {
            Some(memory) => memory,
            None => {
                let memory = Arc::new(Contiguous::new(range.end, state.caching)?);
                state.memory = Arc::downgrade(&memory);
                memory
            }
        };
        if range.end > memory.size() {
            return Err(Error::Invalid);
        }
        Ok(memory)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            PHYS_CONTIGUOUS_ADDRESS => self.tell_address(VirtAddr(argument)),
            PHYS_CONTIGUOUS_CACHING => self.set_caching(argument),
            _ => Err(Error::NotTerminal),
        }
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Region {
    fn tell_address(&self, to: VirtAddr) -> Result<usize> {
        let credentials = cred::credentials().get();
        credentials.require(Capability::SysRawio)?;
        let memory = self.0.lock().memory.upgrade();
        let address = memory.and_then(|memory| memory.address());
        user::write(to, address.ok_or(Error::NoSuchDevice)?.0)?;
        Ok(0)
    }

    fn set_caching(&self, number: u64) -> Result<usize> {
        let caching = match number {
            0 => Caching::WriteBack,
            1 => Caching::WriteCombining,
            2 => Caching::Uncached,
            _ => return Err(Error::Invalid),
        };
        let mut state = self.0.lock();
        if state.memory.strong_count() != 0 {
            return Err(Error::Busy);
        }
        state.caching = caching;
        Ok(0)
    }
}

/// The memory, while anybody maps it.
struct Contiguous {
    pages: Vec<Page>,
    caching: Caching,
}

impl Contiguous {
    fn new(bytes: u64, caching: Caching) -> Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| Error::OutOfMemory)?;
        let request = DmaRequest::new(bytes, PAGE_BYTES);
        let pages = contiguous_pages(&request, caching).map_err(|_| Error::OutOfMemory)?;
        Ok(Self { pages, caching })
    }

    fn address(&self) -> Option<PhysAddr> {
        self.pages.first().map(Page::phys)
    }
}

impl MemoryObject for Contiguous {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        self.ready_page(index, sharing).ok_or(FaultError::Bus)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.pages.get(usize::try_from(index).ok()?).cloned()
    }

    fn size(&self) -> u64 {
        (self.pages.len() * PAGE_BYTES) as u64
    }

    fn caching(&self) -> Caching {
        self.caching
    }

    fn label(&self) -> &'static str {
        "/dev/phys_contiguous"
    }
}
