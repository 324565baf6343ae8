//! `/dev/vsa/NAME`, open: plain bytes, and the ring of whoever sets one up.
//!
//! Who may open it is the node's mode: its owner's alone at first. Who only reads may be given it by chmod(2): an exported area
//! is a file to ordinary programs. A ring needs a descriptor for reading and writing.

use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::ops::Range;

use base::{Instant, PAGE_BYTES, VirtAddr};
use kernel_block::Durability;
use kernel_block::lent::LentPages;
use mach::mem::fallible;
use mach::sync::Once;
use mm::io::{Sink, Source, partial};
use mm::pinned::Budget;
use mm::{MemoryObject, Window, user};
use sync::poll::{Events, Pollee};
use sync::{Error, Mutex, Result, Wait};
use vfs::file::{File, OpenFile, StatusFlags};
use vfs::{FileType, Metadata, device_number};
use vsa::control;
use vsa::ring::RingSize;

use crate::area::{Area, Inside, Lease, Revocable};
use crate::nodes::MAJOR;
use crate::plain::Stretch;
use crate::ring::Ring;

/// The limit is on what all rings pin together: memory is the machine's.
static PINNED: Budget = Budget::new(4);

/// See the module.
pub struct AreaFile {
    area: Arc<Area>,
    lease: Lease,
    ring: Once<Arc<Ring>>,
    /// Held while a ring is set up.
    setup: Mutex<()>,
    /// Held by who writes plain bytes.
    writing: Mutex<()>,
    pollee: Arc<Pollee>,
}

impl AreaFile {
    /// Errors: `NoSuchDevice` if it was deleted, `OutOfMemory`.
    pub fn new(area: Arc<Area>) -> Result<Self> {
        let pollee = fallible::arc(Pollee::new())?;
        Ok(Self {
            lease: area.open()?,
            area,
            ring: Once::new(),
            setup: Mutex::new(()),
            writing: Mutex::new(()),
            pollee,
        })
    }

    fn enter(&self) -> Result<Inside<'_>> {
        self.area.enter(self.lease)
    }

    fn ring(&self) -> Result<&Arc<Ring>> {
        self.ring.get().ok_or(Error::Invalid)
    }

    /// Errors: `BadFile` for a descriptor that does not read and write, `Invalid` for a size that cannot be, `Busy` if the
    /// area has a ring, `Interrupted` while the disk has requests of the ring before, and those of [`Ring::new`].
    fn set_up(&self, open: &OpenFile, entries: u64) -> Result<usize> {
        if !open.is_readable() || !open.is_writable() {
            return Err(Error::BadFile);
        }
        let entries = u32::try_from(entries).ok().and_then(RingSize::new);
        let size = entries.ok_or(Error::Invalid)?;
        let _alone = self.setup.lock();
        let inside = self.enter()?;
        self.area.take_ring(self.lease)?;
        let ring = Ring::new(
            self.area.clone(),
            inside.map.clone(),
            size,
            self.pollee.clone(),
        );
        let weak = ring
            .as_ref()
            .ok()
            .map(|ring| -> Weak<dyn Revocable> { Arc::<Ring>::downgrade(ring) });
        self.area.set_ring(self.lease, weak);
        self.ring.set(ring?).map_err(|_| Error::Busy)?;
        Ok(0)
    }

    /// Errors: `Invalid` without a ring or for no whole pages, `Busy` the second time, and behind an IOMMU for pages that the disk
    /// reaches already, `NoBuffers` beyond a limit, those of `AddressSpace::pin`.
    fn register(&self, at: u64) -> Result<usize> {
        let [address, bytes]: [u64; 2] = user::read(VirtAddr(at))?;
        let ring = self.ring()?;
        let page = PAGE_BYTES as u64;
        if bytes == 0 || (address | bytes) % page != 0 {
            return Err(Error::Invalid);
        }
        if ring.has_pages() {
            return Err(Error::Busy);
        }
        let held = PINNED.hold((bytes / page) as usize, Error::NoBuffers)?;
        let pages = user::space().pin(VirtAddr(address), bytes)?;
        let pages = LentPages::new(pages, self.area.store.memory())?;
        ring.set_pages(fallible::arc(pages)?, held)?;
        Ok(0)
    }

    /// Rings the bell, then waits until a completion is there, for so many nanoseconds at most; `u64::MAX` is for ever.
    fn bell_and_wait(&self, nanos: u64) -> Result<usize> {
        let ring = self.ring()?;
        ring.bell()?;
        let end = match nanos {
            u64::MAX => Instant::NEVER,
            nanos => Instant::from_nanos(mach::time::now().as_nanos().saturating_add(nanos)),
        };
        let how = Wait::INTERRUPTIBLE.until(end).expire_as(Error::TimedOut);
        ring.wait(how).map(|()| 0)
    }

    fn renew(&self, at: u64) -> Result<usize> {
        let inside = self.enter()?;
        if let Some(ring) = self.ring.get() {
            ring.renew(inside.map.clone());
        }
        self.tell_geometry(&inside, at)
    }

    fn tell_geometry(&self, inside: &Inside<'_>, at: u64) -> Result<usize> {
        let geometry = [inside.map.blocks(), self.area.block_bytes()];
        user::write(VirtAddr(at), geometry).map(|()| 0)
    }
}

impl Drop for AreaFile {
    /// A ring that is loaded would live on by its requests, and take more from whoever kept it mapped.
    fn drop(&mut self) {
        if let Some(ring) = self.ring.get() {
            ring.end();
        }
        self.area.close(self.lease, self.ring.get().is_some());
    }
}

impl File for AreaFile {
    fn is_seekable(&self) -> bool {
        true
    }

    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let inside = self.enter()?;
        let mut done = 0;
        while to.remaining() != 0 {
            let at = offset.saturating_add(done as u64);
            let stretch = Stretch::new(&self.area.store, &inside.map, at, to.remaining());
            let read = stretch.and_then(|found| found.map_or(Ok(0), |stretch| stretch.read(to)));
            match read {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let durability = match open.flags().contains(StatusFlags::DSYNC) {
            true => Durability::Forced,
            false => Durability::Volatile,
        };
        let _alone = self.writing.lock();
        let inside = self.enter()?;
        let mut done = 0;
        while from.remaining() != 0 {
            let at = offset.saturating_add(done as u64);
            let stretch = Stretch::new(&self.area.store, &inside.map, at, from.remaining());
            let written = stretch.and_then(|found| {
                found.map_or(Err(Error::NoSpace), |stretch| {
                    stretch.write(durability, from)
                })
            });
            match written {
                Ok(count) => done += count,
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    fn bring_out(&self) -> Result<()> {
        let _inside = self.enter()?;
        self.area.store.flush()
    }

    fn poll(&self) -> Events {
        match self.ring.get() {
            Some(ring) => ring.ready(),
            None => Events::READABLE | Events::WRITABLE,
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let memory = self.ring()?.memory().clone();
        match is_shared {
            true => Ok(Window::new(memory, range.start, range.end - range.start)?),
            false => Err(Error::Invalid),
        }
    }

    fn ioctl(&self, open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            control::BELL => self.ring()?.bell().map(|()| 0),
            control::BELL_AND_WAIT => self.bell_and_wait(argument),
            control::SETUP => self.set_up(open, argument),
            control::REGISTER => self.register(argument),
            control::RENEW => self.renew(argument),
            control::GEOMETRY => self.tell_geometry(&self.enter()?, argument),
            _ => Err(Error::NotTerminal),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::anonymous(FileType::CharDevice);
        metadata.node = device_number(MAJOR, self.area.minor);
        metadata.size = self.enter()?.map.blocks() * self.area.block_bytes();
        Ok(metadata)
    }

    fn label(&self) -> String {
        format!("/dev/vsa/{}", self.area.name.bytes().escape_ascii())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
