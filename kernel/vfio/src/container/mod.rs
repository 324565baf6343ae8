//! A container: addresses for devices, and the functions that see memory at them.
//!
//! Each function has a domain of its own, and all domains of a container map the same. Who
//! maps and unmaps holds `dma` and works on all loans that were in the list then; a loan that ends
//! meanwhile is kept until that is over. A loan leaves the list only with its domain empty. So
//! who finds it gone may give pages back (**Reached**).

mod dma;
mod info;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use iommu::{Lent, Rights};
use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use mm::pinned::Held;
use sync::{Error, Mutex, Result};
use vfio::{Iova, Mappings, numbers};
use vfs::file::{File, FileRef, OpenFile};

use crate::confinement;
use crate::pinned::{self, Pinned};

/// See the module.
pub struct Container {
    dma: Mutex<Dma>,
    lent: Spin<Vec<Arc<Lent>>>,
    /// A unit did not say that it forgot: nothing that was mapped is given back.
    is_stuck: AtomicBool,
}

/// Whether an IOMMU is set, and what is mapped.
struct Dma {
    is_set: bool,
    mappings: Mappings<Mapping>,
    /// What the IOMMU's tables take for that.
    tables: Held,
}

/// What is mapped at a range of addresses.
struct Mapping {
    pinned: Pinned,
    rights: Rights,
}

/// Opens /dev/vfio/vfio.
pub fn open() -> Result<FileRef> {
    let container = Container {
        dma: Mutex::new(Dma {
            is_set: false,
            mappings: Mappings::default(),
            tables: pinned::no_tables(),
        }),
        lent: Spin::new(Vec::new()),
        is_stuck: AtomicBool::new(false),
    };
    Ok(fallible::arc(ContainerFile(fallible::arc(container)?))?)
}

impl Container {
    /// The container that a file is.
    ///
    /// Errors: `Invalid` for other files.
    pub fn of(open: &OpenFile) -> Result<Arc<Self>> {
        let file = open.file.as_any().downcast_ref::<ContainerFile>();
        file.map(|file| file.0.clone()).ok_or(Error::Invalid)
    }

    /// Whether its functions are behind an IOMMU, as far as it has any.
    fn is_confined(&self) -> bool {
        self.lent.lock().iter().all(|lent| lent.is_confined())
    }

    /// Whether an IOMMU was set, or that there is none.
    pub fn has_iommu(&self) -> bool {
        self.dma.lock().is_set
    }

    /// Runs `act` on what is mapped and on all loans, with everything held still.
    fn with<R>(&self, act: impl FnOnce(&mut Dma, &[Arc<Lent>]) -> Result<R>) -> Result<R> {
        let mut dma = self.dma.lock();
        let lent = fallible::collected(self.lent.lock().iter().cloned())?;
        if lent.is_empty() {
            self.reset(&mut dma);
        }
        let done = act(&mut dma, &lent);
        self.settle(&mut dma, &lent);
        // The last of a loan that ended meanwhile goes here, before others map and unmap.
        drop(lent);
        done
    }

    /// Empties the domains of loans that ended meanwhile, and all if none is left.
    fn settle(&self, dma: &mut Dma, lent: &[Arc<Lent>]) {
        let all = self.lent.lock();
        let is_gone = |one: &&Arc<Lent>| !all.iter().any(|known| Arc::ptr_eq(known, one));
        lent.iter().filter(is_gone).for_each(|one| self.empty(one));
        let are_gone = all.is_empty();
        drop(all);
        if are_gone {
            self.reset(dma);
        }
    }

    /// A function comes in and reaches what is mapped.
    ///
    /// Errors: `Invalid` if it cannot be led from there, `OutOfMemory`.
    pub fn attach(&self, lent: &Arc<Lent>) -> Result<()> {
        self.with(|dma, all_lent| {
            if all_lent
                .iter()
                .any(|known| known.is_confined() != lent.is_confined())
            {
                return Err(Error::Invalid);
            }
            for (iova, mapping) in dma.mappings.iter() {
                let mapped = dma::map_for(lent, iova, mapping);
                if let Err(error) = mapped {
                    self.empty(lent);
                    return Err(error);
                }
            }
            let tables = count_tables(all_lent) + lent.tables();
            if let Err(error) = dma.tables.count(tables, Error::OutOfMemory) {
                self.empty(lent);
                return Err(error);
            }
            let mut all = self.lent.lock();
            if let Err(error) = all.make_room(1) {
                self.empty(lent);
                return Err(error.into());
            }
            all.push(lent.clone());
            Ok(())
        })
    }

    /// A function goes and reaches nothing any more. With the last one everything goes. Does not
    /// sleep.
    pub fn detach(&self, lent: &Arc<Lent>) {
        let mut all = self.lent.lock();
        self.empty(lent);
        all.retain(|known| !Arc::ptr_eq(known, lent));
        let is_last = all.is_empty();
        drop(all);
        if !is_last {
            return;
        }
        // Who has it finds no loan when it is done, and does the same.
        if let Some(mut dma) = self.dma.try_lock() {
            self.reset(&mut dma);
        }
    }

    fn empty(&self, lent: &Lent) {
        if !lent.clear() {
            self.is_stuck.store(true, SeqCst);
        }
    }

    /// As it was at first. Nothing is attached.
    fn reset(&self, dma: &mut Dma) {
        dma.is_set = false;
        let is_out = !self.is_stuck.load(SeqCst);
        if let Ok(all) = dma.mappings.take(Iova::ALL) {
            all.for_each(|(_, mapping)| mapping.pinned.give_back(is_out));
        }
        dma.tables = pinned::no_tables();
    }

    fn set_iommu(&self, kind: u64) -> Result<usize> {
        self.with(|dma, lent| {
            if lent.is_empty() || dma.is_set {
                return Err(Error::Invalid);
            }
            // No group without an IOMMU shares a container with one that has it.
            match (kind, lent.iter().all(|lent| lent.is_confined())) {
                (numbers::TYPE1 | numbers::TYPE1_V2, true) | (numbers::NOIOMMU, false) => {
                    dma.is_set = true;
                    Ok(0)
                }
                _ => Err(Error::WrongDevice),
            }
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // No function is in it, and nobody else has it, so the lock is free.
        if let Some(mut dma) = self.dma.try_lock() {
            self.reset(&mut dma);
        }
    }
}

/// A container as a program has it open.
struct ContainerFile(Arc<Container>);

impl File for ContainerFile {
    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            numbers::GET_API_VERSION => Ok(numbers::API_VERSION),
            numbers::CHECK_EXTENSION => Ok(has_extension(argument).into()),
            numbers::SET_IOMMU => self.0.set_iommu(argument),
            _ if !self.0.has_iommu() => Err(Error::Invalid),
            _ if !self.0.is_confined() => Err(Error::NotTerminal),
            numbers::IOMMU_GET_INFO => self.0.tell_info(argument),
            numbers::IOMMU_MAP_DMA => self.0.map(argument),
            numbers::IOMMU_UNMAP_DMA => self.0.unmap(argument),
            _ => Err(Error::NotTerminal),
        }
    }

    fn label(&self) -> String {
        String::from("anon_inode:[vfio]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

fn count_tables(lent: &[Arc<Lent>]) -> usize {
    lent.iter().map(|lent| lent.tables()).sum()
}

fn has_extension(extension: u64) -> bool {
    match extension {
        numbers::TYPE1 | numbers::TYPE1_V2 | numbers::UNMAP_ALL => !confinement::is_absent(),
        numbers::NOIOMMU => confinement::is_absent(),
        _ => false,
    }
}
