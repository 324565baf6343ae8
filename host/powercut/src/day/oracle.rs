//! What may be on the disk, however long it runs and whatever fails.
//!
//! - **Names** are transactions: those that are found are the names of one moment, not before the last
//!   promise.
//! - **Bytes** come when their page is brought down, sector by sector. Each sector of a file is one that it had
//!   at this place at some time since fsync(2) last succeeded; one that it never had is another file's, or
//!   was read before it was written.
//! - **Sizes** are between the smallest and the largest since then.
//! - A page whose write-back failed is promised by no fsync(2) until it was brought down after all.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use ext4::Sync;

use super::machine::Brought;
use super::pages::PAGE;
use crate::files::operation::FOLDERS;
use crate::image::Tree;

const SECTOR: usize = 512;
const SECTORS_OF_PAGE: u64 = PAGE / SECTOR as u64;

type Sector = Arc<[u8; SECTOR]>;

/// A file that there ever was; inodes are used again.
type FileId = usize;

/// The names at one moment.
type Names = BTreeMap<String, FileId>;

/// A file since it was last safe.
struct File {
    inode: u32,
    /// What each sector may be, the newest last; others are zeroes.
    sectors: BTreeMap<u64, Vec<Sector>>,
    /// Pages that could not be brought down.
    lost: BTreeSet<u64>,
    size: u64,
    sizes: RangeInclusive<u64>,
    /// The moments of its first name, and of the last change of one.
    made: usize,
    named: usize,
}

impl File {
    fn new(inode: u32, size: u64, named: usize) -> Self {
        Self {
            inode,
            sectors: BTreeMap::new(),
            lost: BTreeSet::new(),
            size,
            sizes: size..=size,
            made: named,
            named,
        }
    }

    fn versions(&self, sector: u64) -> &[Sector] {
        self.sectors.get(&sector).map_or(&[], Vec::as_slice)
    }

    fn put(&mut self, sector: u64, bytes: Sector) {
        let zeroes = || vec![Arc::new([0; SECTOR])];
        let versions = self.sectors.entry(sector).or_insert_with(zeroes);
        if versions.last() != Some(&bytes) {
            versions.push(bytes);
        }
    }

    fn resize(&mut self, size: u64) {
        self.size = size;
        let (least, most) = (*self.sizes.start(), *self.sizes.end());
        self.sizes = least.min(size)..=most.max(size);
    }

    /// Whether the first bytes of a sector may be these.
    fn may_have(&self, sector: u64, found: &[u8]) -> bool {
        let versions = self.versions(sector);
        // A page of which the disk has a part only may have been cut where the file ended on the disk.
        let is_cut = self.lost.contains(&(sector / SECTORS_OF_PAGE));
        let end = found.iter().rposition(|byte| *byte != 0);
        let end = end.map_or(0, |last| last + 1);
        let len = if is_cut { end } else { found.len() };
        let is_same = |version: &Sector| version[..len] == found[..len];
        match versions.is_empty() {
            true => found.iter().all(|byte| *byte == 0),
            false => versions.iter().any(is_same),
        }
    }

    fn check(&self, found: &[u8]) -> Result<(), String> {
        if !self.sizes.contains(&(found.len() as u64)) {
            let (len, sizes) = (found.len(), &self.sizes);
            return Err(format!("has {len} bytes, not {sizes:?}"));
        }
        for (sector, bytes) in (0..).zip(found.chunks(SECTOR)) {
            if !self.may_have(sector, bytes) {
                let start = &bytes[..bytes.len().min(16)];
                return Err(format!("sector {sector} ({start:?}...) was never so"));
            }
        }
        Ok(())
    }

    /// All is on the disk but what was lost.
    fn promise(&mut self) {
        let lost = &self.lost;
        self.sectors.retain(|sector, versions| {
            if !lost.contains(&(sector / SECTORS_OF_PAGE)) {
                versions.drain(..versions.len() - 1);
            }
            true
        });
        if self.lost.is_empty() {
            self.sizes = self.size..=self.size;
        }
    }
}

/// What programs did since the last start.
pub struct Oracle {
    files: Vec<File>,
    /// The files that have these inodes now.
    inodes: BTreeMap<u32, FileId>,
    /// Names of each moment since the last promise; the first is the moment `first`.
    moments: Vec<Names>,
    first: usize,
    /// Moments of the last change of each directory.
    folders: BTreeMap<String, usize>,
}

/// The regular files in the directories of the scene, with their inodes.
fn regular(tree: &Tree) -> impl Iterator<Item = (&String, u32, &[u8])> {
    let is_ours = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let files = tree.files.iter();
    files
        .filter(move |(path, file)| !file.is_directory && is_ours(path))
        .map(|(path, file)| (path, file.inode, file.bytes.as_slice()))
}

impl Oracle {
    /// Of what a disk has.
    pub fn new(tree: &Tree) -> Self {
        let mut oracle = Self {
            files: Vec::new(),
            inodes: BTreeMap::new(),
            moments: vec![Names::new()],
            first: 0,
            folders: BTreeMap::new(),
        };
        for (path, inode, bytes) in regular(tree) {
            let id = match oracle.inodes.get(&inode) {
                Some(id) => *id,
                None => oracle.add(inode, bytes),
            };
            oracle.moments[0].insert(path.clone(), id);
        }
        oracle
    }

    fn add(&mut self, inode: u32, bytes: &[u8]) -> FileId {
        let mut file = File::new(inode, bytes.len() as u64, self.moment());
        for (sector, bytes) in (0..).zip(bytes.chunks(SECTOR)) {
            let mut whole = [0; SECTOR];
            whole[..bytes.len()].copy_from_slice(bytes);
            file.sectors.insert(sector, vec![Arc::new(whole)]);
        }
        self.files.push(file);
        self.inodes.insert(inode, self.files.len() - 1);
        self.files.len() - 1
    }

    fn names(&self) -> &Names {
        self.moments.last().expect("there is one")
    }

    fn moment(&self) -> usize {
        self.first + self.moments.len() - 1
    }

    fn file(&self, inode: u32) -> Option<&File> {
        self.files.get(*self.inodes.get(&inode)?)
    }

    fn file_mut(&mut self, inode: u32) -> Option<&mut File> {
        self.files.get_mut(*self.inodes.get(&inode)?)
    }

    /// The inode that has this name.
    pub fn at(&self, path: &str) -> Option<u32> {
        self.names().get(path).map(|id| self.files[*id].inode)
    }

    /// A file was made.
    pub fn created(&mut self, path: &str, inode: u32) {
        self.add(inode, &[]);
        self.renamed(&[(path, Some(inode))]);
        let moment = self.moment();
        if let Some(file) = self.file_mut(inode) {
            file.made = moment;
        }
    }

    /// Some paths lead to other inodes now; `None` for no longer any.
    pub fn renamed(&mut self, changes: &[(&str, Option<u32>)]) {
        let mut names = self.names().clone();
        let moment = self.moment() + 1;
        for (path, inode) in changes {
            let after = inode.and_then(|inode| self.inodes.get(&inode).copied());
            let before = match after {
                Some(id) => names.insert((*path).into(), id),
                None => names.remove(*path),
            };
            for id in before.into_iter().chain(after) {
                self.files[id].named = moment;
            }
            let folder = path.split('/').next().unwrap_or_default();
            self.folders.insert(folder.into(), moment);
        }
        self.moments.push(names);
    }

    /// A page has these bytes now.
    pub fn wrote(&mut self, inode: u32, page: u64, bytes: &[u8]) {
        if let Some(file) = self.file_mut(inode) {
            let sectors = bytes.as_chunks::<SECTOR>().0.iter();
            for (sector, bytes) in (page * SECTORS_OF_PAGE..).zip(sectors) {
                file.put(sector, Arc::new(*bytes));
            }
        }
    }

    /// Bytes from `from` to `to` were to be zeroes, and some may be: programs may read either.
    pub fn may_be_zeroed(&mut self, inode: u32, from: u64, to: u64) {
        let Some(file) = self.file_mut(inode) else {
            return;
        };
        let newest = file.sectors.clone();
        self.zeroed(inode, from, to);
        let Some(file) = self.file_mut(inode) else {
            return;
        };
        for (sector, versions) in newest {
            if let Some(newest) = versions.last() {
                file.put(sector, newest.clone());
            }
        }
        file.lost.extend(from / PAGE..to.div_ceil(PAGE));
    }

    /// Bytes from `from` to `to` read as zeroes now.
    pub fn zeroed(&mut self, inode: u32, from: u64, to: u64) {
        let Some(file) = self.file_mut(inode) else {
            return;
        };
        let each = SECTOR as u64;
        let range = from / each..to.div_ceil(each);
        let there = file.sectors.range(range).map(|(sector, _)| *sector);
        for sector in there.collect::<Vec<_>>() {
            let start = from.saturating_sub(sector * each) as usize;
            let end = (to - sector * each).min(each) as usize;
            // The disk has one of them, and that is zeroed there; the newest stays the last.
            for mut bytes in file.versions(sector).to_vec() {
                Arc::make_mut(&mut bytes)[start..end].fill(0);
                file.put(sector, bytes);
            }
        }
    }

    /// The size is another.
    pub fn resized(&mut self, inode: u32, size: u64) {
        if let Some(file) = self.file_mut(inode) {
            file.resize(size);
        }
    }

    /// Pages were brought down, or not.
    pub fn brought(&mut self, brought: &Brought) {
        let Some(file) = self.file_mut(brought.inode) else {
            return;
        };
        for page in brought.pages.clone() {
            match brought.is_there {
                true => file.lost.remove(&page),
                false => file.lost.insert(page),
            };
        }
    }

    /// Whether a page could not be brought down.
    pub fn is_lost(&self, inode: u32, page: u64) -> bool {
        self.file(inode)
            .is_some_and(|file| file.lost.contains(&page))
    }

    /// Whether a program may read these bytes of a page: the newest, unless they could not be brought down.
    pub fn check_read(&self, inode: u32, page: u64, bytes: &[u8]) -> Result<(), String> {
        let Some(file) = self.file(inode) else {
            return Err(format!("inode {inode} has no file"));
        };
        for (sector, bytes) in (page * SECTORS_OF_PAGE..).zip(bytes.chunks(SECTOR)) {
            let newest = file.versions(sector).last();
            let is_newest = match newest {
                Some(newest) => newest[..bytes.len()] == *bytes,
                None => bytes.iter().all(|byte| *byte == 0),
            };
            let may_be_old = file.lost.contains(&page) && file.may_have(sector, bytes);
            if !is_newest && !may_be_old {
                return Err(format!("inode {inode}, sector {sector} is read wrongly"));
            }
        }
        Ok(())
    }

    /// A change of the size that has failed may have been made in part.
    pub fn may_have_size(&mut self, inode: u32, size: u64) {
        if let Some(file) = self.file_mut(inode) {
            let now = file.size;
            file.resize(size);
            file.size = now;
        }
    }

    /// fsync(2) or fdatasync(2) of a file has succeeded.
    pub fn synced(&mut self, inode: u32, what: Sync) {
        if let Some(file) = self.file_mut(inode) {
            file.promise();
            let moment = match what {
                Sync::All => file.named,
                Sync::Data => file.made,
            };
            self.forget_before(moment);
        }
    }

    /// fsync(2) of a directory has.
    pub fn synced_folder(&mut self, folder: &str) {
        let moment = self.folders.get(folder).copied().unwrap_or(0);
        self.forget_before(moment);
    }

    /// All has been brought down.
    pub fn synced_all(&mut self) {
        self.files.iter_mut().for_each(File::promise);
        self.forget_before(self.moment());
    }

    fn forget_before(&mut self, moment: usize) {
        let count = moment.saturating_sub(self.first);
        self.moments.drain(..count);
        self.first += count;
    }

    /// Whether this may be what is left.
    pub fn check(&self, tree: &Tree) -> Result<(), String> {
        let mut why = String::new();
        for (moment, names) in self.moments.iter().enumerate().rev() {
            match self.check_moment(tree, names) {
                Ok(()) => return Ok(()),
                Err(error) => why = format!("{why}\n  unlike moment {moment}: {error}"),
            }
        }
        Err(format!("no moment fits:{why}"))
    }

    fn check_moment(&self, tree: &Tree, names: &Names) -> Result<(), String> {
        let found = regular(tree).map(|(path, inode, _)| (path.clone(), inode));
        let found: BTreeMap<String, u32> = found.collect();
        let wanted = names.iter();
        let wanted = wanted.map(|(path, id)| (path.clone(), self.files[*id].inode));
        let wanted: BTreeMap<String, u32> = wanted.collect();
        if found != wanted {
            return Err(format!("there are {found:?}, not {wanted:?}"));
        }
        for (path, id) in names {
            let bytes = tree.bytes(path).unwrap_or(&[]);
            let checked = self.files[*id].check(bytes);
            checked.map_err(|error| format!("{path}: {error}"))?;
        }
        Ok(())
    }
}
