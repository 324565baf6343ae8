//! A machine: a volume, and pages above it. What is called here does what the kernel does of the same name
//! (`kernel/pagecache`, `kernel/fs-ext4`), with one thread.

use std::collections::BTreeMap;
use std::ops::Range;

use base::{Duration, Instant};
use ext4::{
    Access, Allocate, Change, Error, FileType, Grown, Mapping, ROOT_INODE, Rename, Result, Sync,
    Time, Volume,
};
use pagecache::{DirtyLimits, Mark, Pressure};

use super::pages::{PAGE, Pages};
use super::rig::{self, Disk};
use crate::files::scene::new;

/// Memory for pages.
const AVAILABLE_PAGES: u64 = 400;
/// The flusher comes so often (`vm.dirty_writeback_centisecs`).
const PERIOD: Duration = Duration::from_secs(5);
/// What is dirty for so long is due (`vm.dirty_expire_centisecs`).
const EXPIRE: Duration = Duration::from_secs(30);
/// Blocks that are written while they get their place, with those before them.
const SHORT_BLOCKS: u32 = 16;

/// A page was brought down, or is lost.
#[derive(Clone, Debug)]
pub struct Brought {
    /// Of this inode.
    pub inode: u32,
    /// Which ones.
    pub pages: Range<u64>,
    /// Whether they are on the disk.
    pub is_there: bool,
}

/// A machine that runs.
pub struct Machine {
    /// What it has mounted.
    pub volume: Volume,
    /// Of the inodes that somebody has used.
    pub files: BTreeMap<u32, Pages>,
    /// What was brought down since somebody last looked.
    pub brought: Vec<Brought>,
    next_flush: Instant,
}

/// The time of changes.
pub fn time(now: Instant) -> Time {
    Time {
        seconds: 1_800_000_000 + (now.as_nanos() / 1_000_000_000) as i64,
        nanos: (now.as_nanos() % 1_000_000_000) as u32,
    }
}

fn now() -> Instant {
    rig::with(|rig| rig.now())
}

impl Machine {
    /// Mounts the disk of this thread.
    pub fn start() -> Result<Self, String> {
        let mounted = Volume::mount(Box::new(Disk), Access::ReadWrite);
        let (volume, found) = mounted.map_err(|error| format!("{error:?}"))?;
        match found.has_errors {
            true => Err("the image says that it has errors".into()),
            false => Ok(Self {
                volume,
                files: BTreeMap::new(),
                brought: Vec::new(),
                next_flush: now() + PERIOD,
            }),
        }
    }

    /// The pages of an inode.
    pub fn pages(&mut self, inode: u32) -> Result<&mut Pages> {
        if !self.files.contains_key(&inode) {
            let size = self.volume.inode(inode)?.size;
            self.files.insert(inode, Pages::new(size));
        }
        self.files.get_mut(&inode).ok_or(Error::NotFound)
    }

    fn blocks_of_page(&self) -> u64 {
        PAGE / self.volume.block_bytes() as u64
    }

    fn release(&mut self, pages: u64) {
        let blocks = pages * self.blocks_of_page();
        self.volume.promises().release(blocks);
    }

    /// Brings a page into memory.
    pub fn read_page(&mut self, inode: u32, page: u64) -> Result<()> {
        if self.pages(inode)?.index.get(page).is_some() {
            return Ok(());
        }
        let mut bytes = Box::new([0; PAGE as usize]);
        match self.volume.read(inode, page * PAGE, &mut bytes[..]) {
            Ok(_) | Err(Error::BeyondEnd) => {}
            Err(error) => return Err(error),
        }
        self.pages(inode)?.index.insert(page, bytes);
        Ok(())
    }

    /// write(2) within one page.
    pub fn write(&mut self, inode: u32, at: u64, bytes: &[u8]) -> Result<()> {
        if !self.volume.is_writable() {
            return Err(Error::ReadOnly);
        }
        let page = at / PAGE;
        self.read_page(inode, page)?;
        let pages = self.pages(inode)?;
        let has_room =
            pages.index.has(page, Mark::Settled) || pages.index.has(page, Mark::Promised);
        if !has_room {
            self.promise()?;
        }
        let pages = self.pages(inode)?;
        pages.put(page, (at % PAGE) as usize, bytes);
        pages.index.set(page, Mark::Dirty);
        if !has_room {
            pages.index.set(page, Mark::Promised);
        }
        pages.size = pages.size.max(at + bytes.len() as u64);
        let now = now();
        pages.modified = Some(time(now));
        pages.listed.get_or_insert(now);
        self.throttle(inode);
        Ok(())
    }

    fn promise(&mut self) -> Result<()> {
        let blocks = self.blocks_of_page();
        if self.volume.promises().promise(blocks) {
            return Ok(());
        }
        self.bring_all(Instant::NEVER);
        match self.volume.promises().promise(blocks) {
            true => Ok(()),
            false => Err(Error::NoSpace),
        }
    }

    fn pressure(&self) -> Pressure {
        let dirty: usize = self
            .files
            .values()
            .map(|pages| pages.index.count(Mark::Dirty))
            .sum();
        DirtyLimits::DEFAULT.pressure(dirty as u64, AVAILABLE_PAGES, PAGE)
    }

    fn throttle(&mut self, inode: u32) {
        match self.pressure() {
            Pressure::None => {}
            Pressure::Flush => self.flush(now()),
            // Who has the file open hears of a failure.
            Pressure::Wait => {
                let _ = self.write_back(inode);
            }
        }
    }

    /// Time passes until `until`, and the flusher comes when it should.
    pub fn wait_until(&mut self, until: Instant) {
        while self.next_flush <= until && !rig::with(|rig| rig.is_off) {
            rig::with(|rig| rig.wait_until(self.next_flush));
            let before = match self.pressure() {
                Pressure::None if now().as_nanos() < EXPIRE.as_nanos() => Instant::from_millis(0),
                Pressure::None => now() - EXPIRE,
                _ => now(),
            };
            self.flush(before);
            self.next_flush = now() + PERIOD;
        }
        rig::with(|rig| rig.wait_until(until));
    }

    fn flush(&mut self, before: Instant) {
        self.bring_all(before);
        if self.volume.failure().is_none() {
            let _ = self.volume.commit();
        }
    }

    /// Brings down what is dirty since before `before`; who has a file open hears of its failures.
    fn bring_all(&mut self, before: Instant) {
        let is_due = |pages: &Pages| pages.listed.is_some_and(|since| since <= before);
        let due = self.files.iter().filter(|(_, pages)| is_due(pages));
        let due: Vec<u32> = due.map(|(inode, _)| *inode).collect();
        for inode in due {
            let _ = self.bring_down(inode);
        }
    }

    /// All pages of a file, and the time of their change.
    fn bring_down(&mut self, inode: u32) -> Result<()> {
        self.pages(inode)?.listed = None;
        let brought = self.write_back(inode);
        if let Some(modified) = self.pages(inode)?.modified {
            let change = Change {
                modified: Some(modified),
                ..Change::default()
            };
            self.volume.change(inode, &change, modified)?;
            self.pages(inode)?.modified = None;
        }
        brought
    }

    fn write_back(&mut self, inode: u32) -> Result<()> {
        let (mut from, mut result) = (0, Ok(()));
        while let Some(run) = self.pages(inode)?.take_run(from) {
            let count = run.bytes.len() as u64 / PAGE;
            from = run.first + count;
            let size = self.pages(inode)?.size;
            let brought = self.bring(inode, run.first * PAGE, &run.bytes, size);
            self.release(run.promised);
            let is_there = brought.is_ok();
            let pages = self.pages(inode)?;
            match is_there {
                true => (run.first..from).for_each(|page| {
                    pages.index.set(page, Mark::Settled);
                }),
                false => pages.failures.note(),
            }
            result = result.and(brought);
            self.brought.push(Brought {
                inode,
                pages: run.first..from,
                is_there,
            });
        }
        result
    }

    fn bring(&mut self, inode: u32, start: u64, bytes: &[u8], size: u64) -> Result<()> {
        let block = self.volume.block_bytes() as u64;
        let end = size.next_multiple_of(block).min(start + bytes.len() as u64);
        let mut at = start;
        while at < end {
            let part = &bytes[(at - start) as usize..(end - start) as usize];
            at += self.bring_some(inode, at, part, size)?;
        }
        Ok(())
    }

    /// Brings down the beginning of `bytes`; returns how many.
    fn bring_some(&mut self, inode: u32, at: u64, bytes: &[u8], size: u64) -> Result<u64> {
        let each = self.volume.block_bytes() as u64;
        let end = at + bytes.len() as u64;
        let blocks = (at / each) as u32..(end / each) as u32;
        let modified = self.pages(inode)?.modified;
        let grown = |end: u64| Grown {
            size: size.min(end),
            modified,
        };
        let write = |block: u64, part: Range<u32>| {
            let bytes_of = |block: u32| block as usize * each as usize;
            let part = &bytes[bytes_of(part.start)..bytes_of(part.end)];
            ext4::Device::write(&mut Disk, block * each, part, ext4::Durability::Volatile)
        };
        let (volume, all) = (&mut self.volume, blocks.clone());
        let new = volume.write_new(inode, all, SHORT_BLOCKS, grown(end), &mut { write })?;
        if let Some(len) = new {
            return Ok(u64::from(len) * each);
        }
        let run = volume.place(inode, blocks)?;
        let len = u64::from(run.len) * each;
        if let Mapping::Written(block) | Mapping::Unwritten(block) = run.place {
            write(block, 0..run.len)?;
            self.volume.settle(inode, &run, grown(at + len))?;
        }
        Ok(len)
    }

    /// fsync(2) or fdatasync(2) of an open file; `Err` is EIO.
    pub fn sync(&mut self, inode: u32, what: Sync) -> Result<()> {
        let brought = self.bring_down(inode);
        let synced = brought.and_then(|()| self.volume.sync_file(inode, what));
        let pages = self.pages(inode)?;
        let is_news = pages.failures.tell(&mut pages.heard);
        match is_news {
            true => synced.and(Err(Error::Device)),
            false => synced,
        }
    }

    /// sync(2), whose failures nobody is told.
    pub fn sync_all(&mut self) -> bool {
        self.bring_all(Instant::NEVER);
        self.volume.failure().is_none() && self.volume.commit().is_ok()
    }

    /// ftruncate(2).
    pub fn truncate(&mut self, inode: u32, size: u64) -> Result<()> {
        if size > self.volume.inode(inode)?.size {
            self.write_back(inode)?;
        }
        self.volume.truncate(inode, size, time(now()))?;
        let promised = self.pages(inode)?.resize(size);
        self.release(promised);
        self.pages(inode)?.modified = None;
        Ok(())
    }

    /// fallocate(2).
    pub fn allocate(&mut self, inode: u32, range: Range<u64>, how: Allocate) -> Result<()> {
        if how != Allocate::Extend {
            self.write_back(inode)?;
            let size = self.pages(inode)?.size.min(range.end);
            if self.volume.inode(inode)?.size < size {
                self.volume.truncate(inode, size, time(now()))?;
            }
        }
        self.volume
            .fallocate(inode, range.clone(), how, time(now()))?;
        let pages = self.pages(inode)?;
        let promised = match how {
            Allocate::Extend => {
                pages.size = pages.size.max(range.end);
                0
            }
            Allocate::KeepSize => 0,
            Allocate::PunchHole | Allocate::ZeroRange => pages.punch(range),
        };
        self.release(promised);
        Ok(())
    }

    /// A new file in a directory.
    pub fn create(&mut self, folder: &str, name: &str) -> Result<u32> {
        let folder = self.volume.lookup(ROOT_INODE, folder.as_bytes())?;
        let new = new(FileType::Regular);
        let made = self
            .volume
            .create(folder, name.as_bytes(), &new, time(now()))?;
        self.files.insert(made, Pages::new(0));
        Ok(made)
    }

    /// link(2).
    pub fn link(&mut self, inode: u32, folder: &str, name: &str) -> Result<()> {
        let folder = self.volume.lookup(ROOT_INODE, folder.as_bytes())?;
        let now = time(now());
        self.volume.link(folder, name.as_bytes(), inode, now)
    }

    /// unlink(2); an inode that has no name any more.
    pub fn unlink(&mut self, folder: &str, name: &str) -> Result<Option<u32>> {
        let folder = self.volume.lookup(ROOT_INODE, folder.as_bytes())?;
        let gone = self.volume.unlink(folder, name.as_bytes(), time(now()))?;
        Ok((gone.links == 0).then_some(gone.inode))
    }

    /// rename(2); an inode that has no name any more. A file that replaces another is brought down first.
    pub fn rename(&mut self, from: (&str, &str), to: (&str, &str)) -> Result<Option<u32>> {
        let here = self.volume.lookup(ROOT_INODE, from.0.as_bytes())?;
        let there = self.volume.lookup(ROOT_INODE, to.0.as_bytes())?;
        if self.volume.lookup(there, to.1.as_bytes()).is_ok() {
            let inode = self.volume.lookup(here, from.1.as_bytes())?;
            if self.pages(inode)?.listed.is_some() {
                self.bring_down(inode)?;
            }
        }
        let (here, there) = ((here, from.1.as_bytes()), (there, to.1.as_bytes()));
        let lost = self
            .volume
            .rename(here, there, Rename::Replace, time(now()))?;
        Ok(lost.filter(|lost| lost.links == 0).map(|lost| lost.inode))
    }

    /// Nobody uses an inode without names any more.
    pub fn evict(&mut self, inode: u32) {
        let pages = self.files.remove(&inode);
        let promised = pages.map_or(0, |pages| pages.index.count(Mark::Promised) as u64);
        self.release(promised);
        // It stays on the list of orphans, and the next mount tries again.
        let _ = self.volume.evict(inode, time(now()));
    }

    /// fsync(2) of a directory.
    pub fn sync_folder(&mut self, folder: &str) -> Result<()> {
        let folder = self.volume.lookup(ROOT_INODE, folder.as_bytes())?;
        self.volume.sync_file(folder, Sync::All)
    }
}
