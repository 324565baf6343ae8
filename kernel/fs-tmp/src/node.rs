//! An inode in memory.
//!
//! Lock order: a directory's names, then a node's attributes; both are spin locks and no
//! two of a kind are held together but in `rename`, where the caller's lock on both
//! directories makes any order safe.

use alloc::collections::LinkedList;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use mach::sync::Spin;
use mm::io::{Sink, Source};
use mm::{self, FaultError, MemoryObject, Page, Sharing};
use sync::{Error, Result};

use super::System;
use super::contents::Contents;
use super::directory::Directory;
use vfs::attributes::Attributes;
use vfs::extended::{Extended, ExtendedAttributes};
use vfs::file::{File, OpenFile, StatusFlags};
use vfs::inode::{DirEntry, Emit};
use vfs::locks::FileLocks;
use vfs::seals::Seals;
use vfs::set_ids::SET_IDS;
use vfs::{Attachment, Change, FileType, Inode, InodeRef, Metadata, New, Timestamp};

enum Body {
    Regular(Contents),
    Directory(Spin<Directory<Node>>),
    Symlink(Vec<u8>),
    Special,
}

/// A file, directory, link or node.
pub struct Node {
    number: u64,
    kind: FileType,
    device: u64,
    system: Arc<System>,
    attributes: Spin<Attributes>,
    body: Body,
    attachment: Attachment,
    extended: ExtendedAttributes,
    locks: FileLocks,
    seals: Seals,
    /// Areas of programs that show it.
    shown: AtomicUsize,
    me: Weak<Self>,
}

/// What of a new node does not come from the program.
pub(super) struct Origin {
    /// Its bytes in the boot image.
    pub boot: &'static [u8],
    /// Its times.
    pub time: Timestamp,
}

impl Node {
    pub(super) fn root(system: &Arc<System>, mode: u32) -> Arc<Self> {
        let new = New {
            kind: FileType::Directory,
            mode,
            uid: 0,
            gid: 0,
            device: 0,
            target: &[],
        };
        Self::new(
            system,
            &new,
            &Origin {
                boot: &[],
                time: Timestamp::now(),
            },
        )
    }

    pub(super) fn new(system: &Arc<System>, new: &New<'_>, origin: &Origin) -> Arc<Self> {
        let body = match new.kind {
            FileType::Regular => Body::Regular(Contents::new(system.clone(), origin.boot)),
            FileType::Directory => Body::Directory(Spin::new(Directory::default())),
            FileType::Symlink => Body::Symlink(new.target.to_vec()),
            _ => Body::Special,
        };
        Arc::new_cyclic(|me| Self {
            number: system.next_number(),
            kind: new.kind,
            device: new.device,
            system: system.clone(),
            attributes: Spin::new(Attributes::new(new, origin.time)),
            body,
            attachment: Attachment::default(),
            extended: ExtendedAttributes::default(),
            locks: FileLocks::default(),
            seals: Seals::default(),
            shown: AtomicUsize::new(0),
            me: me.clone(),
        })
    }

    fn names(&self) -> Result<&Spin<Directory<Self>>> {
        match &self.body {
            Body::Directory(names) => Ok(names),
            _ => Err(Error::NotDirectory),
        }
    }

    fn contents(&self) -> Result<&Contents> {
        match &self.body {
            Body::Regular(contents) => Ok(contents),
            Body::Directory(_) => Err(Error::IsDirectory),
            _ => Err(Error::Invalid),
        }
    }

    /// Puts `node` under `name` in this directory.
    pub(super) fn add(&self, name: &[u8], node: &Arc<Self>) -> Result<()> {
        self.names()?.lock().insert(name, node.clone())?;
        self.touch(i32::from(node.kind == FileType::Directory));
        Ok(())
    }

    /// The child as a node of this system.
    pub(super) fn child(&self, name: &[u8]) -> Result<Arc<Self>> {
        self.names()?.lock().get(name).cloned()
    }

    /// Takes owner and mode of a directory's member in the boot image.
    pub(super) fn take_owner(&self, entry: &cpio::Entry<'_>) -> Result<()> {
        let (mode, uid, gid) = (Some(entry.permissions()), Some(entry.uid), Some(entry.gid));
        self.change(&Change {
            mode,
            uid,
            gid,
            ..Change::default()
        })
    }

    /// The contents changed now; `links` is added to the number of links.
    fn touch(&self, links: i32) {
        self.attributes.lock().touch(links);
    }

    /// One of its names came or went.
    fn count_link(&self, links: i32) {
        self.attributes.lock().count_link(links);
    }

    fn drop_name(&self, gone: &Arc<Self>) {
        let is_directory = gone.kind == FileType::Directory;
        gone.count_link(if is_directory { -2 } else { -1 });
        self.touch(-i32::from(is_directory));
    }

    fn as_node(inode: &InodeRef) -> Result<&Self> {
        inode.as_any().downcast_ref().ok_or(Error::CrossDevice)
    }

    /// `inode` as a counted node, if it is of this file system.
    fn own_node(&self, inode: &InodeRef) -> Result<Arc<Self>> {
        let node = Self::as_node(inode)?;
        match node.me.upgrade() {
            Some(node) if Arc::ptr_eq(&node.system, &self.system) => Ok(node),
            _ => Err(Error::CrossDevice),
        }
    }
}

impl Drop for Node {
    /// What lies below goes one by one, as a recursion could exhaust the kernel's stack.
    /// A directory that waits for its turn takes less memory than its node just gave back.
    fn drop(&mut self) {
        let mut waiting = LinkedList::new();
        waiting.extend(self.take_children());
        while let Some(children) = waiting.pop_front() {
            for child in children {
                waiting.extend(Arc::into_inner(child).and_then(|child| child.take_children()));
            }
        }
    }
}

impl Node {
    /// The nodes that have names here; `None` if there are none.
    fn take_children(&self) -> Option<impl Iterator<Item = Arc<Self>> + use<>> {
        match &self.body {
            Body::Directory(names) => names.lock().take_all(),
            _ => None,
        }
    }
}

impl File for Node {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        self.contents()?.read(offset, to)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        self.seals.check_write()?;
        let contents = self.contents()?;
        let appends = open.flags().contains(StatusFlags::APPEND);
        if self.seals.forbids_growth() {
            let start = if appends { contents.size() } else { offset };
            let end = start.saturating_add(from.remaining() as u64);
            self.seals
                .check_size(contents.size(), end.max(contents.size()))?;
        }
        let written = contents.write((!appends).then_some(offset), from)?;
        if !written.is_empty() {
            self.touch(0);
        }
        Ok((written.end - written.start) as usize)
    }

    fn is_seekable(&self) -> bool {
        matches!(self.body, Body::Regular(_) | Body::Directory(_))
    }

    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::new(self.system.device, self.number, self.kind, 0);
        self.attributes.lock().tell(&mut metadata);
        metadata.node = self.device;
        match &self.body {
            Body::Regular(contents) => {
                metadata.size = contents.size();
                metadata.blocks = contents.blocks();
            }
            Body::Symlink(target) => metadata.size = target.len() as u64,
            Body::Directory(_) | Body::Special => {}
        }
        Ok(metadata)
    }

    fn memory(self: Arc<Self>) -> Option<Arc<dyn MemoryObject>> {
        matches!(self.body, Body::Regular(_)).then_some(self as Arc<dyn MemoryObject>)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl MemoryObject for Node {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        let contents = self.contents().map_err(|_| FaultError::Bus)?;
        if index >= contents.size().div_ceil(base::PAGE_BYTES as u64) {
            return Err(FaultError::Bus);
        }
        contents
            .page(index, sharing)
            .map_err(|_| FaultError::OutOfMemory)
    }

    fn ready_page(&self, index: u64, sharing: Sharing) -> Option<Page> {
        let contents = self.contents().ok()?;
        let inside = index < contents.size().div_ceil(base::PAGE_BYTES as u64);
        inside
            .then(|| contents.ready_page(index, sharing))
            .flatten()
    }

    fn ready_pages(&self, pages: Range<u64>, sharing: Sharing, give: &mut dyn FnMut(u64, &Page)) {
        if let Ok(contents) = self.contents() {
            let end = contents.size().div_ceil(base::PAGE_BYTES as u64);
            let end = pages.end.min(end).max(pages.start);
            contents.ready_pages(pages.start..end, sharing, give);
        }
    }

    fn size(&self) -> u64 {
        self.contents().map_or(0, Contents::size)
    }

    fn mark_dirty(&self, _index: u64) -> core::result::Result<(), FaultError> {
        self.touch(0);
        Ok(())
    }

    fn shown(&self) -> Option<&AtomicUsize> {
        Some(&self.shown)
    }
}

impl Inode for Node {
    fn kind(&self) -> FileType {
        self.kind
    }

    fn may_set_ids(&self) -> bool {
        self.attributes.lock().mode() & SET_IDS != 0
    }

    fn extended(&self) -> Option<&dyn Extended> {
        Some(&self.extended)
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.attributes.lock().change(change);
        Ok(())
    }

    fn note_read(&self, relative: bool) {
        self.attributes.lock().note_read(relative);
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        Ok(self.child(name)?)
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        let node = Self::new(
            &self.system,
            new,
            &Origin {
                boot: &[],
                time: Timestamp::now(),
            },
        );
        self.add(name, &node)?;
        Ok(node)
    }

    fn create_nameless(&self, new: &New<'_>) -> Result<InodeRef> {
        let node = Self::new(
            &self.system,
            new,
            &Origin {
                boot: &[],
                time: Timestamp::now(),
            },
        );
        node.count_link(-1);
        Ok(node)
    }

    fn link(&self, name: &[u8], target: &InodeRef) -> Result<()> {
        let node = self.own_node(target)?;
        self.add(name, &node)?;
        node.count_link(1);
        Ok(())
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        let gone = self.names()?.lock().remove(name).ok_or(Error::NotFound)?;
        self.drop_name(&gone);
        Ok(())
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        let child = self.child(name)?;
        if !child.names()?.lock().is_empty() {
            return Err(Error::NotEmpty);
        }
        self.unlink(name)
    }

    fn rename(&self, name: &[u8], to: &InodeRef, to_name: &[u8], exchange: bool) -> Result<()> {
        let to = Self::as_node(to)?;
        let moved = self.child(name)?;
        let target = to.child(to_name).ok();
        if let Some(target) = target.as_ref().filter(|_| !exchange)
            && let Ok(names) = target.names()
            && !names.lock().is_empty()
        {
            return Err(Error::NotEmpty);
        }
        to.names()?.lock().reserve(to_name)?;
        self.names()?.lock().remove(name);
        self.touch(-i32::from(moved.kind == FileType::Directory));
        if let Some(target) = target {
            to.names()?.lock().remove(to_name);
            if exchange {
                to.touch(-i32::from(target.kind == FileType::Directory));
                target.count_link(0);
                // In the place of what was taken out above.
                self.add(name, &target)?;
            } else {
                to.drop_name(&target);
            }
        }
        moved.count_link(0);
        to.add(to_name, &moved)
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        for (serial, name, node) in self.names()?.lock().from(cursor) {
            let (number, kind) = (node.number, node.kind);
            if !emit(DirEntry {
                name,
                number,
                kind,
                next: serial + 1,
            }) {
                break;
            }
        }
        Ok(())
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match &self.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Error::Invalid),
        }
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let contents = self.contents()?;
        {
            let _writing = contents.writing.lock();
            self.seals.check_size(contents.size(), size)?;
            contents.truncate(size)?;
            if self.shown.load(Ordering::SeqCst) != 0 {
                mm::forget_beyond(core::ptr::from_ref(self).addr(), size);
            }
        }
        self.touch(0);
        Ok(())
    }

    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()> {
        let contents = self.contents()?;
        {
            let _writing = contents.writing.lock();
            if punch {
                self.seals.check_write()?;
                let identity = core::ptr::from_ref(self).addr();
                contents.punch(range, &mut |gone| {
                    if self.shown.load(Ordering::SeqCst) != 0 {
                        mm::forget_pages(identity, gone);
                    }
                })?;
            } else {
                let size = if keep_size {
                    contents.size()
                } else {
                    range.end
                };
                self.seals
                    .check_size(contents.size(), size.max(contents.size()))?;
                contents.reserve(range)?;
                contents.grow(size);
            }
        }
        self.touch(0);
        Ok(())
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        self.contents()?.seek(offset, hole)
    }

    fn attachment(&self) -> Option<&Attachment> {
        Some(&self.attachment)
    }

    fn locks(&self) -> Option<&FileLocks> {
        Some(&self.locks)
    }

    fn seals(&self) -> Option<&Seals> {
        Some(&self.seals)
    }
}
