//! The mounted system: its layers, the inodes that are known, the place where things are made.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

use mach::mem::fallible::{self, TryPush};
use mach::sync::Spin;
use sync::{Error, Mutex, MutexGuard, Result};
use vfs::dentry::Name;
use vfs::mount::Mount;
use vfs::{FileSystem, FileType, InodeRef, New, Usage, next_device};

use crate::layers::{Lower, look_up};
use crate::node::Node;

/// Linux's number of overlayfs (statfs(2)).
const MAGIC: u64 = 0x794c_7630;
/// Overlays over each other, as with Linux: each is a call deeper.
const DEPTH_MAX: u32 = 2;
/// Known inodes at which forgotten ones are looked for at first.
const KNOWN_AT_FIRST: usize = 1024;
/// Where the two parts of an upper layer that is ours alone are.
const UPPER: &[u8] = b"upper";
const WORK: &[u8] = b"work";

/// A tree of which the overlay is made.
pub struct Layer {
    /// Its top.
    pub top: InodeRef,
    /// The file system in which it is.
    pub system: Arc<dyn FileSystem>,
    /// Where it is mounted too; else nobody but the overlay knows the system.
    pub mount: Option<Arc<Mount>>,
}

impl Layer {
    /// Overlays in it, from the top down.
    fn depth(&self) -> u32 {
        let node = self.top.as_any().downcast_ref::<Node>();
        node.map_or(0, |node| node.overlay.depth)
    }

    /// Whether it can take changes: it has white-outs, and cursors that leave room for a layer's number.
    pub fn takes_changes(&self) -> bool {
        !matches!(self.system.kind(), "overlay" | "9p" | "virtiofs")
    }
}

/// The layer that takes changes.
pub struct Upper {
    /// Its tree.
    pub layer: Layer,
    /// A directory of the same system in which things are made.
    pub work: InodeRef,
}

/// An overlay with its top, as it is mounted.
struct Tree {
    overlay: Arc<Overlay>,
    root: Arc<Node>,
}

/// What the inodes of an overlay share.
pub struct Overlay {
    /// The file system's number.
    pub device: u64,
    lowers: Vec<Layer>,
    upper: Option<Upper>,
    /// Overlays from here down.
    depth: u32,
    /// Inodes by their number in the upper layer, so that two names of a file are one inode.
    uppers: Spin<Known<u64>>,
    /// Inodes that only lower layers have, by their place, so that there is one to be copied up.
    lowers_known: Spin<Known<PlaceKey>>,
    /// Held over each change of names in the upper layer.
    changing: Mutex<()>,
    last_made: AtomicU64,
    /// All white-outs are names of one inode, as long as it takes more.
    white_out: Spin<Option<InodeRef>>,
}

/// A directory, which whoever has the key holds, and a name in it.
pub type PlaceKey = (usize, Name);

struct Known<K> {
    nodes: BTreeMap<K, Weak<Node>>,
    /// At so many the forgotten ones are dropped.
    clean_at: usize,
}

impl<K: Ord> Default for Known<K> {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            clean_at: KNOWN_AT_FIRST,
        }
    }
}

impl<K: Ord> Known<K> {
    fn note(&mut self, key: K, node: Weak<Node>) {
        if self.nodes.len() >= self.clean_at {
            self.nodes.retain(|_, node| node.strong_count() != 0);
            self.clean_at = (2 * self.nodes.len()).max(KNOWN_AT_FIRST);
        }
        self.nodes.insert(key, node);
    }

    fn find(&self, key: &K) -> Option<Arc<Node>> {
        self.nodes.get(key)?.upgrade()
    }
}

/// A name in the work directory.
pub struct WorkName([u8; WORK_NAME_BYTES], usize);

const WORK_NAME_BYTES: usize = 24;

impl WorkName {
    /// It.
    pub fn bytes(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or(&[])
    }
}

impl Write for WorkName {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self
            .0
            .get_mut(self.1..)
            .and_then(|rest| rest.get_mut(..text.len()));
        room.ok_or(core::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.1 += text.len();
        Ok(())
    }
}

/// An overlay of `lower` and of `upper`, two file systems that nobody else knows.
///
/// Errors: `OutOfMemory`, and what the upper system says.
pub fn over(lower: Arc<dyn FileSystem>, upper: Arc<dyn FileSystem>) -> Result<Arc<dyn FileSystem>> {
    let (top, below) = (upper.root(), lower.root().metadata()?);
    let work = directory(&top, WORK, &plain(FileType::Directory, 0))?;
    let own = |top: InodeRef, system: Arc<dyn FileSystem>| Layer {
        top,
        system,
        mount: None,
    };
    let mut lowers = fallible::vec(1)?;
    lowers.push(own(lower.root(), lower));
    let like_lower = New {
        uid: below.uid,
        gid: below.gid,
        ..plain(FileType::Directory, below.mode)
    };
    let layer = own(directory(&top, UPPER, &like_lower)?, upper);
    new(lowers, Some(Upper { layer, work }))
}

/// An overlay of these layers, the topmost first.
///
/// Errors: `Invalid` for too many overlays over each other, `OutOfMemory`, and what the upper layer says.
pub fn new(lowers: Vec<Layer>, upper: Option<Upper>) -> Result<Arc<dyn FileSystem>> {
    let depth = 1 + lowers.iter().map(Layer::depth).max().unwrap_or(0);
    if depth > DEPTH_MAX {
        return Err(Error::Invalid);
    }
    if let Some(upper) = &upper {
        clear(&upper.work)?;
    }
    let mut tops = fallible::vec(lowers.len())?;
    for (layer, lower) in lowers.iter().enumerate() {
        let inode = lower.top.clone();
        tops.try_push(Lower { layer, inode })?;
    }
    let overlay = fallible::arc(Overlay {
        device: next_device(),
        lowers,
        upper,
        depth,
        uppers: Spin::default(),
        lowers_known: Spin::default(),
        changing: Mutex::new(()),
        last_made: AtomicU64::new(0),
        white_out: Spin::new(None),
    })?;
    let upper_top = overlay.upper.as_ref().map(|upper| upper.layer.top.clone());
    let root = Node::of(&overlay, upper_top, tops, None)?;
    Ok(fallible::arc(Tree { overlay, root })?)
}

/// The directory `name`, made if it is not there.
pub fn directory(parent: &InodeRef, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
    match look_up(parent, name)? {
        Some(found) => Ok(found),
        None => parent.create(name, new),
    }
}

/// A new file of root's.
pub fn plain(kind: FileType, mode: u32) -> New<'static> {
    New {
        kind,
        mode,
        uid: 0,
        gid: 0,
        device: 0,
        target: &[],
    }
}

/// Takes out all names of a directory that has nothing in it but what was left half made, or white-outs.
///
/// Errors: `NotEmpty` if there is more, and what the layer says.
pub fn clear(directory: &InodeRef) -> Result<()> {
    while let Some((name, kind)) = first(directory)? {
        match kind {
            FileType::Directory => {
                let below = directory.lookup(&name)?;
                while let Some((name, _)) = first(&below)? {
                    below.unlink(&name)?;
                }
                directory.rmdir(&name)?;
            }
            _ => directory.unlink(&name)?,
        }
    }
    Ok(())
}

fn first(directory: &InodeRef) -> Result<Option<(Vec<u8>, FileType)>> {
    let mut found = None;
    directory.list(0, &mut |entry| {
        found = Some((fallible::copied(entry.name), entry.kind));
        false
    })?;
    found.map(|(name, kind)| Ok((name?, kind))).transpose()
}

impl Overlay {
    /// The layer for changes, and nobody else changes names in it meanwhile.
    ///
    /// Errors: `ReadOnly` if there is none.
    pub fn change(&self) -> Result<Changing<'_>> {
        let upper = self.upper.as_ref().ok_or(Error::ReadOnly)?;
        Ok(Changing {
            overlay: self,
            work: &upper.work,
            _alone: self.changing.lock(),
        })
    }

    /// The node of a file in the upper layer, if somebody has it.
    pub fn known(&self, number: u64) -> Option<Arc<Node>> {
        self.uppers.lock().find(&number)
    }

    /// Notes the node of a file in the upper layer.
    pub fn note(&self, number: u64, node: Weak<Node>) {
        self.uppers.lock().note(number, node);
    }

    /// The node of a file that only lower layers have at that place, if somebody has it.
    pub fn known_lower(&self, key: &PlaceKey) -> Option<Arc<Node>> {
        self.lowers_known.lock().find(key)
    }

    /// Notes the node of a file that only lower layers have at that place.
    pub fn note_lower(&self, key: PlaceKey, node: Weak<Node>) {
        self.lowers_known.lock().note(key, node);
    }

    /// Systems that nobody else brings down.
    fn own_systems(&self) -> impl Iterator<Item = &Arc<dyn FileSystem>> {
        let upper = self.upper.iter().map(|upper| &upper.layer);
        let own = upper.chain(&self.lowers);
        own.filter(|layer| layer.mount.is_none())
            .map(|layer| &layer.system)
    }
}

/// The upper layer for who changes names in it.
pub struct Changing<'a> {
    overlay: &'a Overlay,
    /// Where things are made.
    pub work: &'a InodeRef,
    _alone: MutexGuard<'a, ()>,
}

impl Changing<'_> {
    /// A name that is free in the work directory.
    pub fn name(&self) -> WorkName {
        let number = self.overlay.last_made.fetch_add(1, Ordering::Relaxed);
        let mut name = WorkName([0; WORK_NAME_BYTES], 0);
        // Twenty digits and a sign have room.
        let _ = write!(name, "#{number}");
        name
    }

    /// A white-out in the work directory.
    ///
    /// Errors: what the layer says.
    pub fn white_out(&self) -> Result<WorkName> {
        let name = self.name();
        self.put_white_out(self.work, name.bytes())?;
        Ok(name)
    }

    /// Puts a white-out where the upper layer has nothing.
    ///
    /// Errors: what the layer says.
    pub fn put_white_out(&self, directory: &InodeRef, name: &[u8]) -> Result<()> {
        let known = self.overlay.white_out.lock().clone();
        if known.is_some_and(|known| directory.link(name, &known).is_ok()) {
            return Ok(());
        }
        let made = directory.create(name, &plain(FileType::CharDevice, 0))?;
        let old = self.overlay.white_out.lock().replace(made);
        drop(old);
        Ok(())
    }

    /// Takes a name away; a directory has only white-outs in it.
    ///
    /// Errors: `NotEmpty`, and what the layer says.
    pub fn discard(&self, directory: &InodeRef, name: &[u8]) -> Result<()> {
        let gone = directory.lookup(name)?;
        if gone.kind() != FileType::Directory {
            return directory.unlink(name);
        }
        clear(&gone)?;
        directory.rmdir(name)
    }

    /// Puts a white-out in the place of what the upper layer has under `name`, if anything.
    ///
    /// Errors: what the layer says; then nothing has changed.
    pub fn hide(&self, directory: &InodeRef, name: &[u8]) -> Result<()> {
        let Some(gone) = look_up(directory, name)? else {
            return self.put_white_out(directory, name);
        };
        let made = self.white_out()?;
        self.put(made.bytes(), directory, name, Some(&gone))
    }

    /// Moves what was made as `made` to its place, where `old` is, which goes.
    ///
    /// Errors: what the layer says; then nothing has changed.
    pub fn put(
        &self,
        made: &[u8],
        directory: &InodeRef,
        name: &[u8],
        old: Option<&InodeRef>,
    ) -> Result<()> {
        let is_directory = |inode: &InodeRef| inode.kind() == FileType::Directory;
        let new = self.work.lookup(made)?;
        // A directory takes no file's place, nor a file that of a directory that has names.
        let exchanges = old.is_some_and(|old| is_directory(old) || is_directory(&new));
        let moved = self.work.rename(made, directory, name, exchanges);
        if moved.is_err() || exchanges {
            // What stays in the work directory goes at the next mount at the latest.
            let _ = self.discard(self.work, made);
        }
        moved
    }
}

impl FileSystem for Tree {
    fn kind(&self) -> &'static str {
        "overlay"
    }

    fn root(&self) -> InodeRef {
        self.root.clone()
    }

    fn usage(&self) -> Usage {
        let upper = self.overlay.upper.as_ref().map(|upper| &upper.layer);
        let usage = upper
            .or(self.overlay.lowers.first())
            .map(|layer| layer.system.usage());
        Usage {
            magic: MAGIC,
            ..usage.unwrap_or_default()
        }
    }

    fn sync(&self) -> Result<()> {
        match &self.overlay.upper {
            Some(upper) => upper.layer.system.sync(),
            None => Ok(()),
        }
    }

    fn finish(&self) -> Result<()> {
        let all = self.overlay.own_systems().map(|system| system.finish());
        all.fold(Ok(()), Result::and)
    }

    fn give_up_pages(&self, wanted: usize) -> usize {
        self.overlay.own_systems().fold(0, |gone, system| {
            gone + system.give_up_pages(wanted.saturating_sub(gone))
        })
    }
}
