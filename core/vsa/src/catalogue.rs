//! What is asked of a catalogue.

use alloc::vec::Vec;

use crate::areas::{Area, AreaId, Areas, Name, Quota, Uid};
use crate::copies::{self, Copies, CopyState};
use crate::disk::Disk;
use crate::error::{Error, OpenError};
use crate::extent::{Blocks, Extent};
use crate::map::Map;
use crate::planted::{Bug, planted};

/// The catalogue of one disk, as memory has it. Each call is lent the disk that it was opened on.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Catalogue {
    areas: Areas,
    copies: Copies,
}

/// An area to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct New<'a> {
    /// What it is to be called.
    pub name: &'a [u8],
    /// Who may resize and delete it.
    pub owner: Uid,
    /// Its size.
    pub blocks: Blocks,
}

impl Catalogue {
    /// Writes an empty catalogue. What was on the disk is lost.
    pub fn format(disk: &mut dyn Disk) -> Result<Self, OpenError> {
        let shape = copies::shape_of(disk)?;
        let whole = shape.for_areas().ok_or(OpenError::Shape)?;
        let mut catalogue = Self {
            areas: Areas::new(whole),
            copies: Copies::none(shape),
        };
        let stored = catalogue.copies.store(disk, &catalogue.areas);
        // An older catalogue must not be the only other copy: its generation is higher.
        match (stored, catalogue.copies.state) {
            (Ok(()), CopyState::Both) => Ok(catalogue),
            _ => Err(OpenError::Disk),
        }
    }

    /// Reads it.
    pub fn open(disk: &mut dyn Disk) -> Result<Self, OpenError> {
        let (copies, areas) = Copies::open(disk)?;
        Ok(Self { areas, copies })
    }

    /// Writes the copy again that was found damaged, if one was.
    pub fn repair(&mut self, disk: &mut dyn Disk) -> Result<CopyState, Error> {
        if self.copies.state == CopyState::One {
            self.commit(disk, self.areas.clone())?;
        }
        Ok(self.copies.state)
    }

    /// How well it is kept.
    pub fn copy_state(&self) -> CopyState {
        self.copies.state
    }

    /// All areas, by their names.
    pub fn list(&self) -> &[Area] {
        &self.areas.areas
    }

    /// Blocks that nobody has.
    pub fn free_blocks(&self) -> Blocks {
        self.areas.space.blocks()
    }

    /// Makes an area, whose blocks read as zeroes.
    pub fn create(&mut self, disk: &mut dyn Disk, new: &New<'_>) -> Result<Map, Error> {
        let name = Name::new(new.name).ok_or(Error::BadName)?;
        let mut next = self.areas.clone();
        let id = next.create(name, new.owner, new.blocks)?;
        let at = next.owned(id, new.owner)?;
        let area = next.areas.get(at).ok_or(Error::NotFound)?;
        let map = area.map();
        clean(disk, &area.extents)?;
        self.commit(disk, next)?;
        Ok(map)
    }

    /// The area of this name, for its owner and user 0.
    pub fn acquire(&self, name: &[u8], who: Uid) -> Result<Map, Error> {
        let name = Name::new(name).ok_or(Error::BadName)?;
        let at = self.areas.named(&name).map_err(|_| Error::NotFound)?;
        let area = self.areas.areas.get(at).ok_or(Error::NotFound)?;
        match who == 0 || who == area.owner {
            true => Ok(area.map()),
            false => Err(Error::NotOwner),
        }
    }

    /// Gives an area another size. Blocks that are added read as zeroes; those of the old maps that
    /// are not in the new one are somebody else's from now on.
    pub fn resize(
        &mut self,
        disk: &mut dyn Disk,
        id: AreaId,
        who: Uid,
        blocks: Blocks,
    ) -> Result<Map, Error> {
        let mut next = self.areas.clone();
        let at = next.owned(id, who)?;
        let added = next.resize(at, blocks)?;
        let map = next.areas.get(at).ok_or(Error::NotFound)?.map();
        clean(disk, &added)?;
        self.commit(disk, next)?;
        Ok(map)
    }

    /// Forgets an area. Its maps are nobody's from now on.
    pub fn delete(&mut self, disk: &mut dyn Disk, id: AreaId, who: Uid) -> Result<(), Error> {
        let mut next = self.areas.clone();
        let at = next.owned(id, who)?;
        next.delete(at);
        self.commit(disk, next)
    }

    /// Says how much `owner` may have from now on; what it has it keeps. Nothing: as all others.
    pub fn set_quota(
        &mut self,
        disk: &mut dyn Disk,
        owner: Uid,
        blocks_max: Option<Blocks>,
    ) -> Result<(), Error> {
        let mut next = self.areas.clone();
        next.set_quota(owner, blocks_max)?;
        self.commit(disk, next)
    }

    /// Says how much each owner may have that has no quota of its own.
    pub fn set_default_quota(&mut self, disk: &mut dyn Disk, max: Blocks) -> Result<(), Error> {
        let mut next = self.areas.clone();
        next.default_quota = max;
        self.commit(disk, next)
    }

    /// How much each owner may have that has no quota of its own.
    pub fn default_quota(&self) -> Blocks {
        self.areas.default_quota
    }

    /// The quotas that owners have of their own.
    pub fn quotas(&self) -> &[Quota] {
        &self.areas.quotas
    }

    /// Whether a map is of the area as it is now.
    pub fn is_current(&self, map: &Map) -> bool {
        let is_its = |area: &&Area| area.id == map.area();
        let area = self.areas.areas.iter().find(is_its);
        area.is_some_and(|area| area.version == map.version())
    }

    fn commit(&mut self, disk: &mut dyn Disk, next: Areas) -> Result<(), Error> {
        if !self.copies.can_store() {
            return Err(Error::CatalogueFull);
        }
        if planted(Bug::FailedChangeKept) {
            self.areas = next.clone();
        }
        self.copies.store(disk, &next)?;
        self.areas = next;
        Ok(())
    }
}

/// The flush of the change that follows covers it.
fn clean(disk: &mut dyn Disk, extents: &Vec<Extent>) -> Result<(), Error> {
    if planted(Bug::NotCleaned) {
        return Ok(());
    }
    for extent in extents {
        disk.zero(*extent)?;
    }
    Ok(())
}
