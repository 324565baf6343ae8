//! An inode: the files of the layers that it stands for.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use mach::mem::fallible;
use mach::sync::{Once, Spin};
use sync::{Error, Mutex, Result};
use vfs::dentry::Name;
use vfs::extended::Extended;
use vfs::file::FileRef;
use vfs::inode::Emit;
use vfs::locks::FileLocks;
use vfs::set_ids::SET_IDS;
use vfs::{Attachment, Change, FileType, Inode, InodeRef, Metadata, New};

use crate::layers::{Lower, find, is_opaque, is_white_out, look_up};
use crate::listing::Listing;
use crate::overlay::Overlay;

/// Where a file of a lower layer has its name; that does not change before it is copied up.
#[derive(Clone)]
pub struct Place {
    /// The directory.
    pub parent: Arc<Node>,
    /// The name in it.
    pub name: Name,
}

/// A file, a directory, a link or a node.
pub struct Node {
    pub(crate) overlay: Arc<Overlay>,
    /// As stat(2) says it, whatever becomes of the file.
    number: u64,
    kind: FileType,
    /// Directories that are merged, the topmost first, or the file as it is before it is copied up.
    pub(crate) lowers: Vec<Lower>,
    /// What the first of them says.
    lower_metadata: Option<Metadata>,
    /// The file in the upper layer, once there is one.
    pub(crate) upper: Once<InodeRef>,
    pub(crate) place: Spin<Option<Place>>,
    /// Held while it is copied up.
    pub(crate) copying: Mutex<()>,
    pub(crate) listing: Listing,
    attachment: Attachment,
    locks: FileLocks,
    pub(crate) me: Weak<Self>,
}

/// Bits of an inode's number below those that tell its layer.
const LAYER_SHIFT: u32 = 56;

/// The number that a file of a layer has here: 0 for the upper layer, then the lower ones.
pub fn number_in(layer: usize, number: u64) -> u64 {
    number.wrapping_add((layer as u64) << LAYER_SHIFT)
}

impl Node {
    /// The node of a file in the upper layer or (and, for directories) in lower ones; `place` is needed where there is
    /// none in the upper layer.
    ///
    /// Errors: `OutOfMemory`, `NotFound` for no file at all, and what the layers say.
    pub fn of(
        overlay: &Arc<Overlay>,
        upper: Option<InodeRef>,
        lowers: Vec<Lower>,
        place: Option<Place>,
    ) -> Result<Arc<Self>> {
        let number = match &upper {
            Some(upper) => Some(upper.metadata()?.number),
            None => None,
        };
        if let Some(known) = number.and_then(|number| overlay.known(number)) {
            return Ok(known);
        }
        let node = Self::new(overlay, upper, lowers, place)?;
        if let Some(number) = number {
            overlay.note(number, node.me.clone());
        }
        Ok(node)
    }

    fn new(
        overlay: &Arc<Overlay>,
        upper: Option<InodeRef>,
        lowers: Vec<Lower>,
        place: Option<Place>,
    ) -> Result<Arc<Self>> {
        let first = lowers.first();
        let real = upper.as_ref().or(first.map(|lower| &lower.inode));
        let real = real.ok_or(Error::NotFound)?;
        let kind = real.kind();
        let found = real.metadata()?;
        let layer = match &upper {
            Some(_) => 0,
            None => first.map_or(0, |lower| lower.layer + 1),
        };
        let number = number_in(layer, found.number);
        let mut lower_metadata = upper.is_none().then_some(found);
        if let Some(metadata) = &mut lower_metadata {
            metadata.number = number;
            metadata.device = overlay.device;
        }
        let cell = Once::new();
        if let Some(upper) = upper {
            let _ = cell.set(upper);
        }
        fallible::room_for_arc::<Self>()?;
        Ok(Arc::new_cyclic(|me| Self {
            overlay: overlay.clone(),
            number,
            kind,
            lowers,
            lower_metadata,
            upper: cell,
            place: Spin::new(place),
            copying: Mutex::new(()),
            listing: Listing::default(),
            attachment: Attachment::default(),
            locks: FileLocks::default(),
            me: me.clone(),
        }))
    }

    /// The file that is read.
    pub(crate) fn real(&self) -> Result<&InodeRef> {
        let lower = self.lowers.first().map(|lower| &lower.inode);
        self.upper.get().or(lower).ok_or(Error::NotFound)
    }

    /// `inode` as a node of this overlay.
    pub(crate) fn own(&self, inode: &InodeRef) -> Result<Arc<Self>> {
        let node: Option<&Self> = inode.as_any().downcast_ref();
        node.filter(|node| Arc::ptr_eq(&node.overlay, &self.overlay))
            .and_then(|node| node.me.upgrade())
            .ok_or(Error::CrossDevice)
    }

    /// Whether a lower directory has something under `name`.
    pub(crate) fn lower_has(&self, name: &[u8]) -> Result<bool> {
        Ok(!find(&self.lowers, name, false)?.is_empty())
    }

    /// What `name` means.
    pub(crate) fn child(&self, name: &[u8]) -> Result<Arc<Self>> {
        if self.kind != FileType::Directory {
            return Err(Error::NotDirectory);
        }
        let upper = match self.upper.get() {
            Some(directory) => look_up(directory, name)?,
            None => None,
        };
        let Some(upper) = upper else {
            return self.lower_child(name);
        };
        if is_white_out(&upper)? {
            return Err(Error::NotFound);
        }
        let merges = upper.kind() == FileType::Directory && !self.lowers.is_empty();
        let lowers = match merges && !is_opaque(&upper)? {
            true => find(&self.lowers, name, true)?,
            false => Vec::new(),
        };
        Self::of(&self.overlay, Some(upper), lowers, None)
    }

    /// What `name` means where the upper layer has nothing.
    fn lower_child(&self, name: &[u8]) -> Result<Arc<Self>> {
        let name = Name::from(name);
        let key = (core::ptr::from_ref(self).addr(), name.clone());
        let known = self.overlay.known_lower(&key);
        // One that was copied up holds its directory no more, whose address may be another's by now.
        if let Some(known) = known.filter(|known| known.upper.get().is_none()) {
            return Ok(known);
        }
        let lowers = find(&self.lowers, &name, false)?;
        let parent = self.me.upgrade().ok_or(Error::NotFound)?;
        let node = Self::of(&self.overlay, None, lowers, Some(Place { parent, name }))?;
        self.overlay.note_lower(key, node.me.clone());
        Ok(node)
    }

    pub(crate) fn read_metadata(&self) -> Result<Metadata> {
        let Some(upper) = self.upper.get() else {
            return self.lower_metadata.ok_or(Error::NotFound);
        };
        let mut metadata = upper.metadata()?;
        metadata.device = self.overlay.device;
        metadata.number = self.number;
        if self.kind == FileType::Directory && !self.lowers.is_empty() {
            // How many directories are in it nobody counts; 1 says so to find(1), as Linux does.
            metadata.links = 1;
        }
        Ok(metadata)
    }
}

impl Drop for Node {
    /// The last holder of a node may be the last holder of all directories above it: they go one
    /// by one, as a recursion could exhaust the kernel's stack.
    fn drop(&mut self) {
        let mut next = self.place.get_mut().take();
        while let Some(place) = next {
            let parent = Arc::into_inner(place.parent);
            next = parent.and_then(|mut parent| parent.place.get_mut().take());
        }
    }
}

impl Inode for Node {
    fn kind(&self) -> FileType {
        self.kind
    }

    fn may_set_ids(&self) -> bool {
        match (self.upper.get(), &self.lower_metadata) {
            (Some(upper), _) => upper.may_set_ids(),
            (None, found) => found.is_none_or(|found| found.mode & SET_IDS != 0),
        }
    }

    fn prepare_change(&self) -> Result<()> {
        self.copied_up(u64::MAX).map(drop)
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.copied_up(u64::MAX)?.change(change)
    }

    fn note_read(&self, relative: bool) {
        if let Some(upper) = self.upper.get() {
            upper.note_read(relative);
        }
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        Ok(self.child(name)?)
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        Ok(self.add(name, new)?)
    }

    fn create_nameless(&self, new: &New<'_>) -> Result<InodeRef> {
        let directory = self.copied_up(u64::MAX)?;
        let made = directory.create_nameless(new)?;
        Ok(Self::of(&self.overlay, Some(made), Vec::new(), None)?)
    }

    fn link(&self, name: &[u8], target: &InodeRef) -> Result<()> {
        let target = self.own(target)?;
        self.add_link(name, &target)
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        self.remove(name)
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        self.remove_directory(name)
    }

    fn rename(&self, name: &[u8], to: &InodeRef, to_name: &[u8], exchange: bool) -> Result<()> {
        let to = self.own(to)?;
        match exchange {
            true => self.exchange_names(name, &to, to_name),
            false => self.move_name(name, &to, to_name),
        }
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        self.list_merged(cursor, emit)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        self.real()?.read_link()
    }

    /// For a folder of the host: whether it lets us read the file, which it says at opening.
    fn open(&self) -> Option<Result<FileRef>> {
        match self.real().map(|real| real.open()) {
            Ok(Some(Err(error))) | Err(error) => Some(Err(error)),
            Ok(Some(Ok(_)) | None) => None,
        }
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.copied_up(size)?.truncate(size)
    }

    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()> {
        self.copied_up(u64::MAX)?.allocate(range, keep_size, punch)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        match self.upper.get() {
            Some(upper) => upper.sync(data_only),
            None => Ok(()),
        }
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        self.real()?.seek(offset, hole)
    }

    fn locks(&self) -> Option<&FileLocks> {
        Some(&self.locks)
    }

    fn extended(&self) -> Option<&dyn Extended> {
        self.real().ok()?.extended()
    }

    /// A file that began in the upper layer has its object there, as that outlives this node.
    fn attachment(&self) -> Option<&Attachment> {
        match self.upper.get().filter(|_| self.lowers.is_empty()) {
            Some(upper) => upper.attachment(),
            None => Some(&self.attachment),
        }
    }
}
