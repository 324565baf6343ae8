//! The catalogues of the machine's disks and partitions, and what is asked of them.
//!
//! All that changes a catalogue, an area or a node holds the list's lock, which sleeps: administration is rare.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use cred::Capability;
use kernel_block::Store;
use mach::klog;
use mach::mem::fallible::{self, TryGrow};
use sync::{Error, Mutex, Result};
use vfs::file::FileRef;
use vsa::{Blocks, Catalogue, CopyState, Map, Name, New, OpenError, Refused, Uid};

use crate::area::Area;
use crate::failure::{error_of, error_of_opening};
use crate::file::AreaFile;
use crate::nodes;
use crate::store::StoreDisk;

/// Catalogues of the machine.
const CATALOGUES_MAX: usize = 64;

/// Disks are the machine's.
static CATALOGUES: Mutex<Vec<Attached>> = Mutex::new(Vec::new());

/// A catalogue, and the areas of it.
struct Attached {
    store: Store,
    catalogue: Catalogue,
    areas: Vec<Arc<Area>>,
}

/// Looks for catalogues on all disks and partitions on which none is known; by a thread that may sleep.
pub fn attach_all() {
    let mut list = CATALOGUES.lock();
    for store in kernel_block::stores() {
        let is_known = |attached: &Attached| attached.store.name() == store.name();
        if list.len() < CATALOGUES_MAX && !list.iter().any(is_known) {
            attach(&mut list, store);
        }
    }
}

fn attach(list: &mut Vec<Attached>, store: Store) {
    let mut catalogue = match Catalogue::open(&mut StoreDisk(&store)) {
        Ok(catalogue) => catalogue,
        Err(OpenError::Refused([Some(Refused::NotCatalogue), Some(Refused::NotCatalogue)])) => {
            return;
        }
        Err(OpenError::Shape | OpenError::Disk) => return,
        Err(OpenError::Refused(why)) => {
            return klog!("areas of {} are not to be used: {why:?}", store.name());
        }
    };
    if catalogue.repair(&mut StoreDisk(&store)) != Ok(CopyState::Both) {
        klog!(
            "areas of {}: one copy of the catalogue is damaged",
            store.name()
        );
    }
    klog!("areas of {}: {}", store.name(), catalogue.list().len());
    let mut attached = Attached {
        store,
        catalogue,
        areas: Vec::new(),
    };
    if attached.make_areas().is_ok() {
        list.push(attached);
    }
}

impl Attached {
    fn make_areas(&mut self) -> Result<()> {
        for area in self.catalogue.list() {
            let map = self
                .catalogue
                .acquire(area.name().bytes(), 0)
                .map_err(error_of)?;
            let new = Area::new(self.store.clone(), area, map, nodes::next_minor());
            self.areas.make_room(1)?;
            self.areas.push(fallible::arc(new)?);
        }
        self.areas.iter().for_each(|area| nodes::add(area));
        Ok(())
    }

    fn blocks_of(&self, bytes: u64) -> Blocks {
        bytes.div_ceil(self.store.sector_bytes())
    }

    /// Whether `who` may have more blocks without being an administrator: only within what was allowed to it.
    ///
    /// Errors: `NotPermitted`.
    fn check_allowance(&self, who: Uid) -> Result<()> {
        let is_bounded = self.catalogue.default_quota() != Blocks::MAX;
        let is_own = self
            .catalogue
            .quotas()
            .iter()
            .any(|quota| quota.owner == who);
        match is_bounded || is_own {
            true => Ok(()),
            false => require_admin(),
        }
    }

    fn create(&mut self, owner: Uid, bytes: u64, name: &Name) -> Result<()> {
        let blocks = self.blocks_of(bytes);
        let new = New {
            name: name.bytes(),
            owner,
            blocks,
        };
        self.areas.make_room(1)?;
        let map = self
            .catalogue
            .create(&mut StoreDisk(&self.store), &new)
            .map_err(error_of)?;
        let found = self
            .catalogue
            .list()
            .iter()
            .find(|area| area.id() == map.area());
        let area = Area::new(
            self.store.clone(),
            found.ok_or(Error::Io)?,
            map,
            nodes::next_minor(),
        );
        let area = fallible::arc(area)?;
        nodes::add(&area);
        self.areas.push(area);
        Ok(())
    }

    fn resize(&mut self, area: &Arc<Area>, who: Uid, bytes: u64) -> Result<()> {
        let blocks = self.blocks_of(bytes);
        let has = self.blocks(area);
        if blocks > has {
            self.check_allowance(who)?;
        }
        let shrinks = blocks < has && blocks != 0;
        if shrinks {
            area.raise_fence();
        }
        let resized = self
            .catalogue
            .resize(&mut StoreDisk(&self.store), area.id, who, blocks);
        let done = resized.map(|map: Map| area.set_map(map)).map_err(error_of);
        if shrinks {
            area.lower_fence();
        }
        done
    }

    fn blocks(&self, area: &Area) -> Blocks {
        let found = self
            .catalogue
            .list()
            .iter()
            .find(|known| known.id() == area.id);
        found.map_or(0, vsa::Area::blocks)
    }

    fn delete(&mut self, area: &Arc<Area>, who: Uid) -> Result<()> {
        area.revoke(true);
        self.catalogue
            .delete(&mut StoreDisk(&self.store), area.id, who)
            .map_err(error_of)?;
        nodes::remove(area);
        self.areas.retain(|known| !Arc::ptr_eq(known, area));
        Ok(())
    }

    fn tell(&self, text: &mut String) -> core::fmt::Result {
        let (disk, catalogue) = (self.store.name(), &self.catalogue);
        let copies = match catalogue.copy_state() {
            CopyState::Both => 2,
            CopyState::One => 1,
        };
        let (block, free) = (self.store.sector_bytes(), catalogue.free_blocks());
        writeln!(text, "disk {disk} {block} {free} {copies}")?;
        if catalogue.default_quota() != Blocks::MAX {
            writeln!(text, "quota {disk} * {}", catalogue.default_quota())?;
        }
        for quota in catalogue.quotas() {
            writeln!(text, "quota {disk} {} {}", quota.owner, quota.blocks_max)?;
        }
        for area in catalogue.list() {
            let name = area.name().bytes().escape_ascii();
            writeln!(
                text,
                "area {disk} {} {} {name}",
                area.owner(),
                area.blocks()
            )?;
        }
        Ok(())
    }
}

/// Errors: `NotPermitted`.
pub fn require_admin() -> Result<()> {
    cred::credentials().get().require(Capability::SysAdmin)
}

/// The running program's user; an administrator is 0, who may all.
fn caller() -> Uid {
    match require_admin() {
        Ok(()) => 0,
        Err(_) => cred::credentials().with(|who| who.user.fs),
    }
}

fn on_disk<'a>(list: &'a mut [Attached], disk: &str) -> Result<&'a mut Attached> {
    let mut found = list
        .iter_mut()
        .filter(|attached| attached.store.name() == disk);
    found.next().ok_or(Error::NoSuchDevice)
}

/// The area of this name that the running program may change.
fn owned<'a>(list: &'a mut [Attached], name: &[u8]) -> Result<(&'a mut Attached, Arc<Area>, Uid)> {
    let who = caller();
    for attached in list {
        let found = attached.areas.iter().find(|area| area.name.bytes() == name);
        if let Some(area) = found.cloned() {
            return match who == 0 || who == area.owner {
                true => Ok((attached, area, who)),
                false => Err(Error::NotPermitted),
            };
        }
    }
    Err(Error::NotFound)
}

/// Opens the area whose node has this minor number.
pub fn open(minor: u32) -> Result<FileRef> {
    let list = CATALOGUES.lock();
    let mut areas = list.iter().flat_map(|attached| &attached.areas);
    let area = areas
        .find(|area| area.minor == minor)
        .ok_or(Error::NoSuchDevice)?;
    Ok(fallible::arc(AreaFile::new(area.clone())?)?)
}

/// Makes an empty catalogue on a disk or partition that nobody uses.
pub fn format(disk: &str) -> Result<()> {
    require_admin()?;
    let mut list = CATALOGUES.lock();
    if let Some(at) = list
        .iter()
        .position(|attached| attached.store.name() == disk)
    {
        let known = list.swap_remove(at);
        if known.areas.iter().any(|area| area.is_in_use()) {
            list.push(known);
            return Err(Error::Busy);
        }
        known.areas.iter().for_each(|area| {
            area.revoke(true);
            nodes::remove(area);
        });
    }
    let store = kernel_block::stores().find(|store| store.name() == disk);
    let store = store.ok_or(Error::NoSuchDevice)?;
    if !store.is_alone() {
        return Err(Error::Busy);
    }
    if list.len() >= CATALOGUES_MAX {
        return Err(Error::TooManyFilesInSystem);
    }
    list.make_room(1)?;
    let catalogue = Catalogue::format(&mut StoreDisk(&store)).map_err(error_of_opening)?;
    list.push(Attached {
        store,
        catalogue,
        areas: Vec::new(),
    });
    Ok(())
}

/// Makes an area.
pub fn create(disk: &str, owner: Uid, bytes: u64, name: &[u8]) -> Result<()> {
    let name = Name::new(name).ok_or(Error::Invalid)?;
    nodes::checked(&name)?;
    let who = caller();
    if who != 0 && who != owner {
        return Err(Error::NotPermitted);
    }
    let mut list = CATALOGUES.lock();
    let mut all = list.iter().flat_map(|attached| &attached.areas);
    if all.any(|area| area.name == name) {
        return Err(Error::Exists);
    }
    let attached = on_disk(&mut list, disk)?;
    attached.check_allowance(who)?;
    attached.create(owner, bytes, &name)
}

/// Gives an area another size.
pub fn resize(bytes: u64, name: &[u8]) -> Result<()> {
    let mut list = CATALOGUES.lock();
    let (attached, area, who) = owned(&mut list, name)?;
    attached.resize(&area, who, bytes)
}

/// Forgets an area; who has it open has it no more.
pub fn delete(name: &[u8]) -> Result<()> {
    let mut list = CATALOGUES.lock();
    let (attached, area, who) = owned(&mut list, name)?;
    attached.delete(&area, who)
}

/// Takes an area from all who have it open.
pub fn revoke(name: &[u8]) -> Result<()> {
    let mut list = CATALOGUES.lock();
    let (_, area, _) = owned(&mut list, name)?;
    area.revoke(false);
    Ok(())
}

/// Says how much a user may have, or each without a quota of its own.
pub fn set_quota(disk: &str, owner: Option<Uid>, bytes: Option<u64>) -> Result<()> {
    require_admin()?;
    let mut list = CATALOGUES.lock();
    let attached = on_disk(&mut list, disk)?;
    let blocks = bytes.map(|bytes| attached.blocks_of(bytes));
    let (catalogue, disk) = (&mut attached.catalogue, &mut StoreDisk(&attached.store));
    let set = match owner {
        Some(owner) => catalogue.set_quota(disk, owner, blocks),
        None => catalogue.set_default_quota(disk, blocks.unwrap_or(Blocks::MAX)),
    };
    set.map_err(error_of)
}

/// All of it, in lines.
pub fn tell() -> String {
    let mut text = String::new();
    for attached in CATALOGUES.lock().iter() {
        // A string takes all.
        let _ = attached.tell(&mut text);
    }
    text
}
