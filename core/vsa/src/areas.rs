//! What a catalogue holds: areas and quotas, and how a change makes the next state of them.

use alloc::vec::Vec;
use core::fmt;

use crate::error::Error;
use crate::extent::{Blocks, Extent};
use crate::layout::NUMBERS_END;
use crate::map::Map;
use crate::space::Space;
use crate::{AREA_EXTENTS_MAX, AREAS_MAX, EXTENTS_MAX, NAME_MAX, QUOTAS_MAX};

/// A user's number; 0 may do all.
pub type Uid = u32;

/// Whose an area is, for as long as the disk has this catalogue: never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AreaId(pub(crate) u64);

impl AreaId {
    /// The number, to bind what is written in the area to it.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What an area is called: 1 to [`NAME_MAX`] bytes without a slash and a zero byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    bytes: [u8; NAME_MAX],
    len: u8,
}

impl Name {
    /// `bytes`, if they can be a name.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let is_one = (1..=NAME_MAX).contains(&bytes.len())
            && !bytes.iter().any(|byte| matches!(byte, 0 | b'/'));
        let mut name = Self {
            bytes: [0; NAME_MAX],
            len: bytes.len() as u8,
        };
        name.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        is_one.then_some(name)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.bytes().escape_ascii())
    }
}

/// A part of the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area {
    pub(crate) id: AreaId,
    pub(crate) version: u64,
    pub(crate) owner: Uid,
    pub(crate) name: Name,
    pub(crate) extents: Vec<Extent>,
}

impl Area {
    /// Its number.
    pub fn id(&self) -> AreaId {
        self.id
    }

    /// Grows with each resize.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Who may resize and delete it.
    pub fn owner(&self) -> Uid {
        self.owner
    }

    /// What it is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> Blocks {
        self.extents.iter().map(|extent| extent.count()).sum()
    }

    /// Where they are, in order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    pub(crate) fn map(&self) -> Map {
        Map::new(self.id, self.version, &self.extents)
    }

    /// Adds blocks behind the last.
    fn push(&mut self, extent: Extent) {
        match self.extents.last().and_then(|last| last.joined(extent)) {
            Some(joined) => {
                self.extents.pop();
                self.extents.push(joined);
            }
            None => self.extents.push(extent),
        }
    }
}

/// How many blocks an owner's areas may have together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Whose.
    pub owner: Uid,
    /// As many.
    pub blocks_max: Blocks,
}

/// All of it. Areas are sorted by their names. Changes are tried on a copy: one that fails may
/// leave it half changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Areas {
    pub next_id: u64,
    pub default_quota: Blocks,
    pub quotas: Vec<Quota>,
    pub areas: Vec<Area>,
    pub space: Space,
}

impl Areas {
    /// Nothing on a disk whose blocks in `whole` can be given.
    pub fn new(whole: Extent) -> Self {
        Self {
            next_id: 1,
            default_quota: Blocks::MAX,
            quotas: Vec::new(),
            areas: Vec::new(),
            space: Space::around(whole, &[]),
        }
    }

    /// Where the area of this name is or would be.
    pub fn named(&self, name: &Name) -> Result<usize, usize> {
        self.areas.binary_search_by(|area| area.name.cmp(name))
    }

    /// Where an area is that `who` may change.
    pub fn owned(&self, id: AreaId, who: Uid) -> Result<usize, Error> {
        let at = self.areas.iter().position(|area| area.id == id);
        let at = at.ok_or(Error::NotFound)?;
        let is_owner = |area: &Area| who == 0 || area.owner == who;
        match self.areas.get(at).is_some_and(is_owner) {
            true => Ok(at),
            false => Err(Error::NotOwner),
        }
    }

    /// Refuses `owner` `more` blocks beyond its quota.
    fn check_quota(&self, owner: Uid, more: Blocks) -> Result<(), Error> {
        let own = self.quotas.iter().find(|quota| quota.owner == owner);
        let max = own.map_or(self.default_quota, |quota| quota.blocks_max);
        let areas = self.areas.iter().filter(|area| area.owner == owner);
        let used: Blocks = areas.map(Area::blocks).sum();
        match used.checked_add(more).is_some_and(|all| all <= max) {
            true => Ok(()),
            false => Err(Error::OverQuota),
        }
    }

    fn extents(&self) -> usize {
        self.areas.iter().map(|area| area.extents.len()).sum()
    }

    /// A new area, whose blocks are to be cleaned.
    pub fn create(&mut self, name: Name, owner: Uid, blocks: Blocks) -> Result<AreaId, Error> {
        let at = self.named(&name).err().ok_or(Error::Exists)?;
        if blocks == 0 {
            return Err(Error::Empty);
        }
        if self.areas.len() >= AREAS_MAX || self.next_id + 1 >= NUMBERS_END {
            return Err(Error::CatalogueFull);
        }
        self.check_quota(owner, blocks)?;
        let pieces_max = EXTENTS_MAX.saturating_sub(self.extents());
        let extents = self
            .space
            .take(blocks, None, pieces_max.min(AREA_EXTENTS_MAX))?;
        let id = AreaId(self.next_id);
        self.next_id += 1;
        let area = Area {
            id,
            version: 1,
            owner,
            name,
            extents,
        };
        self.areas.insert(at, area);
        Ok(id)
    }

    /// Another size; returns the blocks that were added.
    pub fn resize(&mut self, at: usize, blocks: Blocks) -> Result<Vec<Extent>, Error> {
        let area = self.areas.get(at).ok_or(Error::NotFound)?;
        let (owner, has) = (area.owner, area.blocks());
        if area.version + 1 >= NUMBERS_END {
            return Err(Error::CatalogueFull);
        }
        let added = match blocks {
            0 => return Err(Error::Empty),
            _ if blocks <= has => {
                self.shrink(at, has - blocks);
                Vec::new()
            }
            _ => {
                self.check_quota(owner, blocks - has)?;
                self.grow(at, blocks - has)?
            }
        };
        if let Some(area) = self.areas.get_mut(at) {
            area.version += 1;
        }
        Ok(added)
    }

    fn grow(&mut self, at: usize, more: Blocks) -> Result<Vec<Extent>, Error> {
        let area = self.areas.get_mut(at).ok_or(Error::NotFound)?;
        let end = area.extents.last().map(|extent| extent.end());
        // What lies right behind the last extent needs no extent of its own.
        let added = self.space.take(more, end, AREA_EXTENTS_MAX + 1)?;
        added.iter().for_each(|extent| area.push(*extent));
        let fits = area.extents.len() <= AREA_EXTENTS_MAX && self.extents() <= EXTENTS_MAX;
        fits.then_some(added).ok_or(Error::TooFragmented)
    }

    fn shrink(&mut self, at: usize, mut fewer: Blocks) {
        let Some(area) = self.areas.get_mut(at) else {
            return;
        };
        while fewer != 0 {
            let Some(last) = area.extents.pop() else {
                return;
            };
            let (kept, freed) = last.split_at(last.count() - fewer.min(last.count()));
            area.extents.extend(kept);
            if let Some(freed) = freed {
                fewer -= freed.count();
                self.space.give(freed);
            }
        }
    }

    /// Forgets an area.
    pub fn delete(&mut self, at: usize) {
        if at < self.areas.len() {
            let area = self.areas.remove(at);
            area.extents
                .into_iter()
                .for_each(|extent| self.space.give(extent));
        }
    }

    /// Says how much `owner` may have; nothing for what all others may.
    pub fn set_quota(&mut self, owner: Uid, blocks_max: Option<Blocks>) -> Result<(), Error> {
        self.quotas.retain(|quota| quota.owner != owner);
        let Some(blocks_max) = blocks_max else {
            return Ok(());
        };
        if self.quotas.len() >= QUOTAS_MAX {
            return Err(Error::CatalogueFull);
        }
        self.quotas.push(Quota { owner, blocks_max });
        Ok(())
    }
}
