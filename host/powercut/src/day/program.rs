//! What the program does: operations at random, and what the oracle is told of each.

use ext4::{Allocate, Error, Result, Sync};

use super::life::Life;
use super::pages::PAGE;
use crate::files::operation::FOLDERS;
use crate::random::Random;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Bytes of a file at most.
const SIZE_MAX: u64 = 500_000;
/// Files without names that are held open.
const HELD_MAX: usize = 3;

impl Life {
    fn path(&mut self) -> (&'static str, &'static str, String) {
        let folder = FOLDERS[self.random.below(2)];
        let name = NAMES[self.random.below(NAMES.len())];
        (folder, name, format!("{folder}/{name}"))
    }

    /// One operation; its result, or what is wrong.
    pub fn operate(&mut self) -> Result<Result<()>, String> {
        let (folder, name, path) = self.path();
        let number = self.random.below(100);
        self.tell(&path);
        let Some(inode) = self.oracle.at(&path) else {
            return Ok(self.create(folder, name, &path));
        };
        match number {
            0..=24 => self.write(inode),
            25..=44 => self.read(inode),
            45..=59 => Ok(self.sync(inode, Sync::All)),
            60..=66 => Ok(self.sync(inode, Sync::Data)),
            67..=70 => Ok(self.sync_folder(folder)),
            71..=75 => Ok(self.truncate(inode)),
            76..=79 => Ok(self.allocate(inode)),
            80..=85 => Ok(self.rename((folder, name), &path, inode)),
            86..=88 => Ok(self.link(inode)),
            89..=94 => Ok(self.unlink(folder, name, &path)),
            95 => Ok(self.sync_all()),
            96 => self.give_up(inode),
            _ => Ok(self.close()),
        }
    }

    fn create(&mut self, folder: &str, name: &str, path: &str) -> Result<()> {
        self.tell("create");
        let made = self.machine().create(folder, name)?;
        self.oracle.created(path, made);
        Ok(())
    }

    fn size(&mut self, inode: u32) -> Result<u64> {
        Ok(self.machine().pages(inode)?.size)
    }

    fn write(&mut self, inode: u32) -> Result<Result<()>, String> {
        let Ok(size) = self.size(inode) else {
            return Ok(Err(Error::Device));
        };
        let len = match self.random.below(8) {
            0 => self.random.below(200_000),
            1..=3 => 4096,
            _ => 1 + self.random.below(9000),
        } as u64;
        let mut at = match self.random.below(3) {
            0 => size,
            1 => self.random.below(size as usize + 1) as u64 / 4096 * 4096,
            _ => self.random.below(size as usize + 20_000) as u64,
        };
        let end = (at + len).min(SIZE_MAX);
        self.tell(&format!("write {at}..{end}"));
        let seed = self.random.bits();
        while at < end {
            let until = (at / PAGE * PAGE + PAGE).min(end);
            let bytes: Vec<u8> = (at..until).map(|at| byte(seed, at)).collect();
            if let Err(error) = self.machine().write(inode, at, &bytes) {
                return Ok(Err(error));
            }
            let page = at / PAGE;
            self.note_written(inode, page)?;
            at = until;
        }
        Ok(Ok(()))
    }

    fn note_written(&mut self, inode: u32, page: u64) -> Result<(), String> {
        let machine = self.machine.as_ref();
        let pages = machine.and_then(|machine| machine.files.get(&inode));
        let pages = pages.ok_or("no pages")?;
        let bytes = pages.index.get(page).ok_or("no page")?;
        self.oracle.wrote(inode, page, &bytes[..]);
        self.oracle.resized(inode, pages.size);
        self.note_brought();
        Ok(())
    }

    fn read(&mut self, inode: u32) -> Result<Result<()>, String> {
        let Ok(size) = self.size(inode) else {
            return Ok(Err(Error::Device));
        };
        self.tell("read");
        for page in 0..size.div_ceil(PAGE) {
            if let Err(error) = self.machine().read_page(inode, page) {
                return Ok(Err(error));
            }
            let machine = self.machine.as_ref();
            let pages = machine.and_then(|machine| machine.files.get(&inode));
            let pages = pages.ok_or("no pages")?;
            let bytes = pages.index.get(page).ok_or("no page")?;
            let len = (size - page * PAGE).min(PAGE) as usize;
            let has_stopped = machine.is_some_and(|machine| machine.volume.failure().is_some());
            // What a stopped volume lost with the disk's cache it does not know.
            if !has_stopped {
                self.oracle.check_read(inode, page, &bytes[..len])?;
            }
        }
        Ok(Ok(()))
    }

    fn sync(&mut self, inode: u32, what: Sync) -> Result<()> {
        self.tell(&format!("sync {what:?}"));
        let synced = self.machine().sync(inode, what);
        self.note_brought();
        match synced {
            Ok(()) => {
                self.tally.promises += 1;
                self.oracle.synced(inode, what);
            }
            Err(_) => self.tally.told += 1,
        }
        synced
    }

    fn sync_folder(&mut self, folder: &str) -> Result<()> {
        self.tell("sync folder");
        self.machine().sync_folder(folder)?;
        self.tally.promises += 1;
        self.oracle.synced_folder(folder);
        Ok(())
    }

    fn sync_all(&mut self) -> Result<()> {
        self.tell("sync all");
        let is_whole = self.machine().sync_all();
        self.note_brought();
        if is_whole {
            self.tally.promises += 1;
            self.oracle.synced_all();
        }
        Ok(())
    }

    fn truncate(&mut self, inode: u32) -> Result<()> {
        let before = self.size(inode)?;
        let size = match self.random.below(4) {
            0 => 0,
            1 => before + self.random.below(30_000) as u64,
            _ => self.random.below(before as usize + 1) as u64,
        };
        self.tell(&format!("truncate {before} to {size}"));
        let done = self.machine().truncate(inode, size);
        self.note_brought();
        match done {
            Ok(()) => {
                self.oracle.zeroed(inode, size, before.max(size));
                self.oracle.resized(inode, size);
            }
            Err(_) => self.oracle.may_be_zeroed(inode, size, before.max(size)),
        }
        done
    }

    fn allocate(&mut self, inode: u32) -> Result<()> {
        let size = self.size(inode)?;
        let start = self.random.below(size as usize + 1) as u64;
        let range = start..start + 1 + self.random.below(20_000) as u64;
        let how = [Allocate::Extend, Allocate::PunchHole, Allocate::ZeroRange];
        let how = how[self.random.below(3)];
        let range = match how {
            Allocate::Extend => range,
            // Within the file.
            _ => start..range.end.min(size),
        };
        if range.is_empty() {
            return Ok(());
        }
        self.tell(&format!("{how:?} {range:?}"));
        let done = self.machine().allocate(inode, range.clone(), how);
        self.note_brought();
        match (how, done) {
            (Allocate::Extend, Ok(())) => self.oracle.resized(inode, size.max(range.end)),
            (Allocate::Extend, Err(_)) => self.oracle.may_have_size(inode, range.end.max(size)),
            (_, Ok(())) => self.oracle.zeroed(inode, range.start, range.end),
            (_, Err(_)) => self.oracle.may_be_zeroed(inode, range.start, range.end),
        }
        done
    }

    fn rename(&mut self, from: (&str, &str), path: &str, inode: u32) -> Result<()> {
        let (folder, name, to) = self.path();
        self.tell(&format!("rename to {to}"));
        let there = self.oracle.at(&to);
        let lost = self.machine().rename(from, (folder, name));
        self.note_brought();
        let lost = lost?;
        // Two names of one file both stay.
        if there != Some(inode) {
            let changes = [(path, None), (&*to, Some(inode))];
            self.oracle.renamed(&changes);
        }
        self.hold(lost);
        Ok(())
    }

    fn link(&mut self, inode: u32) -> Result<()> {
        let (folder, name, to) = self.path();
        self.tell(&format!("link {to}"));
        self.machine().link(inode, folder, name)?;
        self.oracle.renamed(&[(&to, Some(inode))]);
        Ok(())
    }

    fn unlink(&mut self, folder: &str, name: &str, path: &str) -> Result<()> {
        self.tell("unlink");
        let lost = self.machine().unlink(folder, name)?;
        self.oracle.renamed(&[(path, None)]);
        self.hold(lost);
        Ok(())
    }

    /// An inode has lost its last name; some are held open.
    fn hold(&mut self, lost: Option<u32>) {
        let Some(inode) = lost else { return };
        match self.held.len() < HELD_MAX && self.random.once_in(2) {
            true => self.held.push(inode),
            false => self.machine().evict(inode),
        }
    }

    /// The first file without a name is held no more.
    fn close(&mut self) -> Result<()> {
        self.tell("close");
        if !self.held.is_empty() {
            let inode = self.held.remove(0);
            self.machine().evict(inode);
        }
        Ok(())
    }

    /// Memory is short; what is read afterwards comes from the disk.
    fn give_up(&mut self, inode: u32) -> Result<Result<()>, String> {
        let oracle = &self.oracle;
        for (inode, pages) in self
            .machine
            .iter_mut()
            .flat_map(|machine| &mut machine.files)
        {
            // What was lost is in memory only.
            pages.give_up(|page| !oracle.is_lost(*inode, page));
        }
        self.read(inode)
    }
}

/// What the write of this seed has at this place: no other write and no other place has the same.
fn byte(seed: u64, at: u64) -> u8 {
    let word = Random::new(seed ^ (at / 8) << 32).bits();
    word.to_le_bytes()[(at % 8) as usize]
}
