//! Extended attributes: a few behind the inode, the rest in one block.
//!
//! A change takes all attributes of the inode apart and puts them together again: they are few.
//! An attribute goes behind the inode if there is room, else into the block. A block that several
//! inodes share (Linux does that) is copied before it changes.
//!
//! Not here: values in inodes of their own (`ea_inode`), and access control lists, whose format on
//! the disk is not that of programs: they are kept, but neither shown nor set.

mod block;
mod entry;

use alloc::vec::Vec;

use crate::bytes::{le32, put_le32};
use crate::error::{Corrupt, Error, Result};
use crate::layout::attributes::{self, MAGIC};
use crate::layout::inode::{GOOD_OLD_BYTES, Inode, Time};
use crate::seal::Seal;
use crate::volume::{Credits, Volume};
use entry::Attribute;

const CREDITS: Credits = 16;

/// What setting an attribute expects of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Nothing.
    Any,
    /// That it is not there.
    Absent,
    /// That it is there.
    Present,
}

/// All attributes of an inode by where they are.
#[derive(Default)]
struct Attributes {
    inside: Vec<Attribute>,
    block: Vec<Attribute>,
}

impl Volume {
    /// The value of an attribute, which is called by its full name (`user.mime_type`).
    pub fn get_attribute(&mut self, number: u32, name: &[u8]) -> Result<Vec<u8>> {
        let (index, suffix) = entry::split_name(name).ok_or(Error::Unsupported)?;
        let inode = self.inode(number)?;
        let all = self.attributes(&inode)?;
        let found = all
            .inside
            .into_iter()
            .chain(all.block)
            .find(|one| one.is(index, suffix));
        Ok(found.ok_or(Error::NotFound)?.value)
    }

    /// Calls `emit` with the full name of each attribute.
    pub fn list_attributes(&mut self, number: u32, emit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let inode = self.inode(number)?;
        let all = self.attributes(&inode)?;
        for one in all.inside.iter().chain(&all.block) {
            if let Some(name) = one.full_name() {
                emit(&name);
            }
        }
        Ok(())
    }

    /// Gives an attribute a value.
    pub fn set_attribute(
        &mut self,
        number: u32,
        name: &[u8],
        value: &[u8],
        expect: Expect,
        now: Time,
    ) -> Result<()> {
        let (index, suffix) = entry::split_name(name).ok_or(Error::Unsupported)?;
        if suffix.len() > 255 {
            return Err(Error::NameTooLong);
        }
        let new = Attribute {
            index,
            name: suffix.to_vec(),
            value: value.to_vec(),
        };
        self.transact(CREDITS, |volume| {
            volume.change_attributes(number, now, |volume, all| {
                let was_there = all.remove(index, suffix);
                match (expect, was_there) {
                    (Expect::Absent, true) => return Err(Error::Exists),
                    (Expect::Present, false) => return Err(Error::NotFound),
                    _ => {}
                }
                volume.place_attribute(number, all, new.clone())
            })
        })
    }

    /// Takes an attribute away.
    pub fn remove_attribute(&mut self, number: u32, name: &[u8], now: Time) -> Result<()> {
        let (index, suffix) = entry::split_name(name).ok_or(Error::Unsupported)?;
        self.transact(CREDITS, |volume| {
            volume.change_attributes(number, now, |_, all| match all.remove(index, suffix) {
                true => Ok(()),
                false => Err(Error::NotFound),
            })
        })
    }

    /// Puts an attribute where there is room.
    fn place_attribute(&mut self, number: u32, all: &mut Attributes, new: Attribute) -> Result<()> {
        let room = self.inside_room(number)?;
        if entry::bytes(all.inside.iter().chain([&new])) <= room {
            all.inside.push(new);
            return Ok(());
        }
        let room = self.geometry.block_bytes - attributes::HEADER_BYTES;
        if entry::bytes(all.block.iter().chain([&new])) > room {
            return Err(Error::NoSpace);
        }
        all.block.push(new);
        Ok(())
    }

    /// Bytes for entries behind the inode, without the magic.
    fn inside_room(&mut self, number: u32) -> Result<usize> {
        let inode = self.inode(number)?;
        if inode.extra_isize == 0 {
            return Ok(0);
        }
        let used = GOOD_OLD_BYTES + usize::from(inode.extra_isize) + 4;
        Ok(self.geometry.inode_bytes.saturating_sub(used))
    }

    fn attributes(&mut self, inode: &Inode) -> Result<Attributes> {
        let damaged = || Error::from(Corrupt::Attributes(inode.number));
        let raw = self.raw_inode(inode.number)?;
        let inside = raw
            .get(GOOD_OLD_BYTES + usize::from(inode.extra_isize)..)
            .unwrap_or(&[]);
        let mut all = Attributes::default();
        if inode.extra_isize != 0 && le32(inside, 0) == MAGIC {
            let area = inside.get(4..).unwrap_or(&[]);
            all.inside = entry::parse(area, area).ok_or_else(damaged)?;
        }
        if inode.attribute_block != 0 {
            let seal = Seal::Attributes;
            let bytes = self
                .store
                .load(inode.attribute_block, seal, &self.geometry)?;
            let area = bytes.get(attributes::HEADER_BYTES..).unwrap_or(&[]);
            all.block = entry::parse(area, &bytes).ok_or_else(damaged)?;
        }
        Ok(all)
    }

    fn change_attributes(
        &mut self,
        number: u32,
        now: Time,
        mut change: impl FnMut(&mut Self, &mut Attributes) -> Result<()>,
    ) -> Result<()> {
        let mut inode = self.inode(number)?;
        let mut all = self.attributes(&inode)?;
        let had_block = !all.block.is_empty();
        change(self, &mut all)?;
        inode.changed = now;
        if had_block || !all.block.is_empty() {
            self.store_block(&mut inode, &all.block)?;
        }
        self.set_inode(&inode)?;
        let extra = usize::from(inode.extra_isize);
        self.edit_raw(number, |raw, _| {
            if let Some(inside) = raw.get_mut(GOOD_OLD_BYTES + extra..).filter(|_| extra != 0) {
                store_inside(inside, &all.inside);
            }
        })
    }

    fn store_block(&mut self, inode: &mut Inode, all: &[Attribute]) -> Result<()> {
        let seal = Seal::Attributes;
        let is_shared = match inode.attribute_block {
            0 => true,
            place => attributes::references(&self.store.load(place, seal, &self.geometry)?) > 1,
        };
        if all.is_empty() || (is_shared && inode.attribute_block != 0) {
            self.release_attribute_block(inode)?;
        }
        if all.is_empty() {
            return Ok(());
        }
        if inode.attribute_block == 0 {
            let goal = self.goal_of(inode);
            inode.attribute_block = self.allocate(goal, 1)?.0;
            inode.sectors += self.block_sectors();
            self.store.create(inode.attribute_block, seal)?;
        }
        block::fill(
            self.store
                .modify(inode.attribute_block, seal, &self.geometry)?,
            all,
        );
        Ok(())
    }

    /// The inode's block of attributes has one owner less.
    pub(crate) fn release_attribute_block(&mut self, inode: &mut Inode) -> Result<()> {
        let place = core::mem::take(&mut inode.attribute_block);
        if place == 0 {
            return Ok(());
        }
        inode.sectors = inode.sectors.saturating_sub(self.block_sectors());
        let seal = Seal::Attributes;
        let references = attributes::references(&self.store.load(place, seal, &self.geometry)?);
        if references <= 1 {
            return self.free_metadata(place);
        }
        let bytes = self.store.modify(place, seal, &self.geometry)?;
        attributes::set_references(bytes, references - 1);
        Ok(())
    }
}

fn store_inside(inside: &mut [u8], attributes: &[Attribute]) {
    inside.fill(0);
    if !attributes.is_empty() {
        put_le32(inside, 0, MAGIC);
        let area = inside.get_mut(4..).unwrap_or(&mut []);
        entry::fill(area, 0, 0, attributes);
    }
}

impl Attributes {
    fn remove(&mut self, index: u8, name: &[u8]) -> bool {
        let before = self.inside.len() + self.block.len();
        self.inside.retain(|one| !one.is(index, name));
        self.block.retain(|one| !one.is(index, name));
        self.inside.len() + self.block.len() != before
    }
}
