//! Names: files made, linked, moved and removed.
//!
//! Each operation is one handle. A file that loses its last name goes to the orphan list in the
//! same transaction; whoever binds the file system calls [`Volume::evict`] once nobody uses it.

use alloc::vec::Vec;

use crate::bytes::{le32, put};
use crate::directory::Place;
use crate::error::{Corrupt, Error, Result};
use crate::extents::Mapping;
use crate::layout::dirent::{self, NAME_BYTES_MAX};
use crate::layout::extent::{self, Extent};
use crate::layout::features::RO_COMPAT_DIR_NLINK;
use crate::layout::inode::{
    self, FLAG_EXTENTS, FLAGS_INHERITED, FileType, GOOD_OLD_BYTES, Inode, MAP_BYTES, Time,
};
use crate::seal::Seal;
use crate::volume::{Credits, ROOT_INODE, Volume};

/// Blocks that an operation on names changes: two directories with a split of a leaf and of nodes
/// each, three inodes, bitmaps and descriptors.
const CREDITS: Credits = 96;
/// Names of one inode (Linux's limit).
const LINKS_MAX: u16 = 65000;
/// `i_extra_isize` where the image does not say: all fields there are.
const EXTRA_ISIZE: u16 = 32;

/// What to make.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// What it is.
    pub kind: FileType,
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// A device's number (major, minor).
    pub device: (u32, u32),
    /// A symbolic link's text.
    pub target: &'a [u8],
}

/// How a name is moved over another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rename {
    /// What was there loses the name.
    Replace,
    /// Nothing may be there.
    NoReplace,
    /// Both change places.
    Exchange,
}

/// What lost a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unlinked {
    /// Its number.
    pub inode: u32,
    /// Names that it still has; with none it waits for [`Volume::evict`].
    pub links: u16,
}

/// What to change; `None` leaves a field as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Last read.
    pub accessed: Option<Time>,
    /// Last write.
    pub modified: Option<Time>,
}

/// A name that may be given to a file.
fn check_name(name: &[u8]) -> Result<()> {
    let is_legal = !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.contains(&0)
        && !name.contains(&b'/');
    match is_legal {
        true if name.len() > NAME_BYTES_MAX => Err(Error::NameTooLong),
        true => Ok(()),
        false => Err(Error::Invalid),
    }
}

impl Volume {
    /// Makes a file under a name that is free; returns its number.
    pub fn create(&mut self, dir: u32, name: &[u8], new: &New<'_>, now: Time) -> Result<u32> {
        check_name(name)?;
        self.transact(CREDITS, |volume| {
            let mut parent = volume.live_directory(dir)?;
            if volume.find(&parent, name)?.is_some() {
                return Err(Error::Exists);
            }
            let mut inode = volume.make_inode(&parent, new, now)?;
            match new.kind {
                FileType::Directory => {
                    volume.fill_directory(&mut inode, dir)?;
                    volume.add_link(&mut parent)?;
                }
                FileType::Symlink => volume.fill_link(&mut inode, new.target)?,
                _ => {}
            }
            volume.set_inode(&inode)?;
            volume.add_entry(
                &mut parent,
                name,
                inode.number,
                inode::entry_type(inode.mode),
            )?;
            volume.touch_directory(&mut parent, now)?;
            Ok(inode.number)
        })
    }

    /// Makes a regular file without a name, which [`Volume::link`] may give one.
    pub fn create_nameless(&mut self, near: u32, new: &New<'_>, now: Time) -> Result<u32> {
        self.transact(CREDITS, |volume| {
            let parent = volume.live_directory(near)?;
            let mut inode = volume.make_inode(&parent, new, now)?;
            inode.links = 0;
            volume.add_orphan(&mut inode)?;
            volume.set_inode(&inode)?;
            Ok(inode.number)
        })
    }

    /// A directory that was not removed.
    fn live_directory(&mut self, number: u32) -> Result<Inode> {
        let dir = self.directory(number)?;
        if dir.links == 0 {
            Err(Error::NotFound)
        } else {
            Ok(dir)
        }
    }

    fn make_inode(&mut self, parent: &Inode, new: &New<'_>, now: Time) -> Result<Inode> {
        let is_directory = new.kind == FileType::Directory;
        let number = self.allocate_inode(parent.number, is_directory)?;
        let generation = self.edit_raw(number, |raw, _| {
            let generation = le32(raw, 0x64).wrapping_add(1);
            inode::clear(raw);
            generation
        })?;
        self.recent.forget(number);
        let has_tree = matches!(new.kind, FileType::Regular | FileType::Directory);
        let mut inode = Inode {
            number,
            mode: new.kind as u16 | new.mode & 0o7777,
            uid: new.uid,
            gid: new.gid,
            size: 0,
            links: 1 + u16::from(is_directory),
            sectors: 0,
            flags: parent.flags & FLAGS_INHERITED | if has_tree { FLAG_EXTENTS } else { 0 },
            accessed: now,
            changed: now,
            modified: now,
            created: now,
            deleted: 0,
            generation,
            attribute_block: 0,
            extra_isize: self.extra_isize(),
            map: [0; MAP_BYTES],
        };
        match new.kind {
            FileType::CharDevice | FileType::BlockDevice => {
                inode.set_device(new.device.0, new.device.1)
            }
            _ if has_tree => extent::init(&mut inode.map, 0, MAP_BYTES),
            _ => {}
        }
        self.resized.insert(number);
        Ok(inode)
    }

    fn extra_isize(&self) -> u16 {
        let room = (self.geometry.inode_bytes - GOOD_OLD_BYTES) as u16;
        let wanted = self.geometry.want_extra_isize;
        if wanted == 0 {
            EXTRA_ISIZE.min(room)
        } else {
            wanted.min(room)
        }
    }

    fn fill_directory(&mut self, inode: &mut Inode, parent: u32) -> Result<()> {
        let own = inode.number;
        self.append_directory_block(inode)?;
        let end = self.geometry.block_bytes - self.entry_tail();
        self.edit_directory(inode, 0, |block| {
            dirent::set(block, 0, 12, own, 2, b".");
            dirent::set(block, 12, end - 12, parent, 2, b"..");
        })
    }

    fn fill_link(&mut self, inode: &mut Inode, target: &[u8]) -> Result<()> {
        if target.len() >= self.geometry.block_bytes {
            return Err(Error::NameTooLong);
        }
        inode.size = target.len() as u64;
        if target.len() < MAP_BYTES {
            put(&mut inode.map, 0, target);
            return Ok(());
        }
        inode.flags |= FLAG_EXTENTS;
        extent::init(&mut inode.map, 0, MAP_BYTES);
        let new: Extent = self.allocate_for(inode, 0, 1)?;
        self.insert_extent(inode, &new)?;
        let text = self.store.create(
            new.physical,
            Seal::LinkText {
                inode: inode.number,
            },
        )?;
        put(text, 0, target);
        Ok(())
    }

    /// The text of a symbolic link.
    pub fn read_link(&mut self, number: u32) -> Result<Vec<u8>> {
        let inode = self.inode(number)?;
        if inode.kind() != Some(FileType::Symlink) {
            return Err(Error::Invalid);
        }
        let len = usize::try_from(inode.size).unwrap_or(usize::MAX);
        if !inode.has(FLAG_EXTENTS) {
            let text = inode.map.get(..len).filter(|_| len < MAP_BYTES);
            return Ok(text.ok_or(Corrupt::Inode(number))?.to_vec());
        }
        let Mapping::Written(block) = self.lookup_run(&inode, 0)?.place else {
            return Err(Corrupt::Inode(number).into());
        };
        let seal = Seal::LinkText { inode: number };
        let bytes = self.store.load(block, seal, &self.geometry)?;
        Ok(bytes.get(..len).ok_or(Corrupt::Inode(number))?.to_vec())
    }

    /// A subdirectory more; many of them count as one where the image allows that.
    fn add_link(&mut self, dir: &mut Inode) -> Result<()> {
        let can_overflow = self.geometry.features.has_ro_compat(RO_COMPAT_DIR_NLINK);
        dir.links = match dir.links {
            1 if can_overflow => 1,
            links if links + 1 < LINKS_MAX => links + 1,
            _ if can_overflow => 1,
            _ => return Err(Error::TooManyLinks),
        };
        Ok(())
    }

    fn remove_link(&mut self, dir: &mut Inode) {
        if dir.links > 2 {
            dir.links -= 1;
        }
    }

    fn touch_directory(&mut self, dir: &mut Inode, now: Time) -> Result<()> {
        dir.modified = now;
        dir.changed = now;
        self.resized.insert(dir.number);
        self.set_inode(dir)
    }

    /// Gives `number` one more name.
    pub fn link(&mut self, dir: u32, name: &[u8], number: u32, now: Time) -> Result<()> {
        check_name(name)?;
        self.transact(CREDITS, |volume| {
            let mut parent = volume.live_directory(dir)?;
            let mut inode = volume.inode(number)?;
            if inode.is_directory() {
                return Err(Error::IsDirectory);
            }
            if volume.find(&parent, name)?.is_some() {
                return Err(Error::Exists);
            }
            match inode.links {
                0 => volume.remove_orphan(&mut inode)?,
                links if links >= LINKS_MAX => return Err(Error::TooManyLinks),
                _ => {}
            }
            inode.links += 1;
            inode.changed = now;
            volume.set_inode(&inode)?;
            volume.add_entry(&mut parent, name, number, inode::entry_type(inode.mode))?;
            volume.touch_directory(&mut parent, now)
        })
    }

    fn existing(&mut self, dir: &Inode, name: &[u8]) -> Result<(Place, Inode)> {
        let place = self.find(dir, name)?.ok_or(Error::NotFound)?;
        let inode = self.inode(place.inode)?;
        match inode.links {
            0 => Err(Corrupt::Inode(place.inode).into()),
            _ => Ok((place, inode)),
        }
    }

    /// Removes the name of anything but a directory.
    pub fn unlink(&mut self, dir: u32, name: &[u8], now: Time) -> Result<Unlinked> {
        check_name(name)?;
        self.transact(CREDITS, |volume| {
            let mut parent = volume.directory(dir)?;
            let (place, mut inode) = volume.existing(&parent, name)?;
            if inode.is_directory() {
                return Err(Error::IsDirectory);
            }
            volume.remove_entry_at(&parent, place)?;
            volume.touch_directory(&mut parent, now)?;
            volume.drop_link(&mut inode, now)
        })
    }

    /// An inode has a name less.
    fn drop_link(&mut self, inode: &mut Inode, now: Time) -> Result<Unlinked> {
        inode.links = if inode.is_directory() {
            0
        } else {
            inode.links - 1
        };
        inode.changed = now;
        if inode.links == 0 && !planted::is("a file without names is no orphan") {
            self.add_orphan(inode)?;
        }
        self.set_inode(inode)?;
        Ok(Unlinked {
            inode: inode.number,
            links: inode.links,
        })
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, dir: u32, name: &[u8], now: Time) -> Result<Unlinked> {
        check_name(name)?;
        self.transact(CREDITS, |volume| {
            let mut parent = volume.directory(dir)?;
            let (place, mut inode) = volume.existing(&parent, name)?;
            volume.check_removable(&inode)?;
            volume.remove_entry_at(&parent, place)?;
            volume.remove_link(&mut parent);
            volume.touch_directory(&mut parent, now)?;
            volume.drop_link(&mut inode, now)
        })
    }

    fn check_removable(&mut self, inode: &Inode) -> Result<()> {
        let dir = self.directory(inode.number)?;
        match dir.number != ROOT_INODE && self.is_empty(&dir)? {
            true => Ok(()),
            false => Err(Error::NotEmpty),
        }
    }

    /// Changes owner, mode or times.
    pub fn change(&mut self, number: u32, change: &Change, now: Time) -> Result<()> {
        self.transact(4, |volume| {
            let mut inode = volume.inode(number)?;
            if let Some(mode) = change.mode {
                inode.mode = inode.mode & !0o7777 | mode & 0o7777;
            }
            inode.uid = change.uid.unwrap_or(inode.uid);
            inode.gid = change.gid.unwrap_or(inode.gid);
            inode.accessed = change.accessed.unwrap_or(inode.accessed);
            inode.modified = change.modified.unwrap_or(inode.modified);
            inode.changed = now;
            volume.set_inode(&inode)
        })
    }
}

/// Moving names.
impl Volume {
    /// Moves `name` in `from` to `to_name` in `to`; returns what lost its name.
    pub fn rename(
        &mut self,
        from: (u32, &[u8]),
        to: (u32, &[u8]),
        how: Rename,
        now: Time,
    ) -> Result<Option<Unlinked>> {
        check_name(from.1)?;
        check_name(to.1)?;
        if planted::is("a rename is two transactions") && self.lookup(to.0, to.1).is_err() {
            let number = self.lookup(from.0, from.1)?;
            self.link(to.0, to.1, number, now)?;
            self.commit()?;
            return self.unlink(from.0, from.1, now).map(|_| None);
        }
        self.transact(CREDITS, |volume| volume.rename_once(from, to, how, now))
    }

    fn rename_once(
        &mut self,
        from: (u32, &[u8]),
        to: (u32, &[u8]),
        how: Rename,
        now: Time,
    ) -> Result<Option<Unlinked>> {
        let old_parent = self.live_directory(from.0)?;
        let new_parent = self.live_directory(to.0)?;
        let (place, inode) = self.existing(&old_parent, from.1)?;
        let there = match self.find(&new_parent, to.1)? {
            Some(place) => Some((place, self.inode(place.inode)?)),
            None => None,
        };
        if inode.is_directory() {
            self.check_not_below(inode.number, to.0)?;
        }
        match (how, there) {
            (Rename::NoReplace, Some(_)) => Err(Error::Exists),
            (Rename::Exchange, None) => Err(Error::NotFound),
            (_, Some((_, other))) if other.number == inode.number => Ok(None),
            (Rename::Exchange, Some((to_place, other))) => {
                if other.is_directory() {
                    self.check_not_below(other.number, from.0)?;
                }
                self.redirect_entry(
                    &old_parent,
                    place,
                    other.number,
                    inode::entry_type(other.mode),
                )?;
                self.redirect_entry(
                    &new_parent,
                    to_place,
                    inode.number,
                    inode::entry_type(inode.mode),
                )?;
                self.move_parent(&other, to.0, from.0, now)?;
                self.move_parent(&inode, from.0, to.0, now)?;
                self.touch_both(from.0, to.0, now)?;
                Ok(None)
            }
            (_, Some((to_place, other))) => {
                let lost =
                    self.replace_name((from.0, place), (to.0, to_place), &inode, &other, now)?;
                Ok(Some(lost))
            }
            (_, None) => {
                let mut parent = new_parent;
                self.add_entry(
                    &mut parent,
                    to.1,
                    inode.number,
                    inode::entry_type(inode.mode),
                )?;
                self.set_inode(&parent)?;
                // A leaf may have been split: the old entry need not be where it was.
                let old_parent = self.directory(from.0)?;
                let (place, _) = self.existing(&old_parent, from.1)?;
                self.remove_entry_at(&old_parent, place)?;
                self.move_parent(&inode, from.0, to.0, now)?;
                self.touch_both(from.0, to.0, now)?;
                Ok(None)
            }
        }
    }

    fn replace_name(
        &mut self,
        from: (u32, Place),
        to: (u32, Place),
        inode: &Inode,
        other: &Inode,
        now: Time,
    ) -> Result<Unlinked> {
        match (inode.is_directory(), other.is_directory()) {
            (true, false) => return Err(Error::NotDirectory),
            (false, true) => return Err(Error::IsDirectory),
            (true, true) => self.check_removable(other)?,
            (false, false) => {}
        }
        let new_parent = self.directory(to.0)?;
        self.redirect_entry(
            &new_parent,
            to.1,
            inode.number,
            inode::entry_type(inode.mode),
        )?;
        let old_parent = self.directory(from.0)?;
        self.remove_entry_at(&old_parent, from.1)?;
        self.move_parent(inode, from.0, to.0, now)?;
        if other.is_directory() {
            let mut parent = self.directory(to.0)?;
            self.remove_link(&mut parent);
            self.set_inode(&parent)?;
        }
        self.touch_both(from.0, to.0, now)?;
        let mut other = self.inode(other.number)?;
        self.drop_link(&mut other, now)
    }

    fn touch_both(&mut self, one: u32, other: u32, now: Time) -> Result<()> {
        for number in [one, other] {
            let mut dir = self.directory(number)?;
            self.touch_directory(&mut dir, now)?;
        }
        Ok(())
    }

    /// A moved inode is changed, and a directory's `..` leads to its new parent.
    fn move_parent(&mut self, inode: &Inode, from: u32, to: u32, now: Time) -> Result<()> {
        let mut moved = self.inode(inode.number)?;
        moved.changed = now;
        self.set_inode(&moved)?;
        if !moved.is_directory() || from == to {
            return Ok(());
        }
        let place = self
            .find(&moved, b"..")?
            .ok_or(Corrupt::Directory(moved.number))?;
        self.redirect_entry(&moved, place, to, 2)?;
        let mut old = self.directory(from)?;
        self.remove_link(&mut old);
        self.set_inode(&old)?;
        let mut new = self.directory(to)?;
        self.add_link(&mut new)?;
        self.set_inode(&new)
    }

    /// A directory must not be moved below itself.
    fn check_not_below(&mut self, number: u32, dir: u32) -> Result<()> {
        let mut at = dir;
        for _ in 0..self.geometry.inodes {
            if at == number {
                return Err(Error::Invalid);
            }
            if at == ROOT_INODE {
                return Ok(());
            }
            at = self.lookup(at, b"..")?;
        }
        Err(Corrupt::Directory(dir).into())
    }
}
