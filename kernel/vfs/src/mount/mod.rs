//! Where file systems hang in the tree.
//!
//! Three kinds of object. A [`SuperBlock`] is a file system with the names that are known of
//! it; a [`Mount`] shows a directory or a file of it at a place; a [`Path`] is a dentry and
//! the mount through which it was reached, so that `..` at the top of a mount leads out of
//! it. Several mounts may show one super block (MS_BIND), each with flags of its own.
//!
//! Programs of a namespace see one tree. Its top is a mount that nobody sees: what programs know
//! as `/` is mounted on it, so that pivot_root(2) finds something to exchange. A mount whose
//! climb ends at no such top is *detached*: it was unmounted while in use, or was made by
//! fsmount(2) or open_tree(2) and has no place yet.
//!
//! | file | what |
//! |---|---|
//! | `dentry` | the cache of names |
//! | `path` | places, and what they are called |
//! | `context` | where a thread stands |
//! | `flags`, `writers` | what a mount forbids; who has files open for writing |
//! | `table` | all mounts, and which one covers a place |
//! | `namespace` | trees for some programs only |
//! | `change` | mount, unmount |
//! | `tree`, `copy` | mounts that hang together; bind |
//! | `propagation`, `spread` | peer groups; what is mounted elsewhere too |
//! | `moving` | move, pivot_root |
//! | `settings` | changes of mounts that stay where they are |
//! | `rootfs` | what is at tops that nobody sees |
//! | `kinds` | the kinds of file system that there are, by name |
//! | `configuration`, `detached` | file systems and mounts by descriptor, before they have a place |
//!
//! Lock order: [`CHANGING`] (sleeps) is held over every change of the tree; then `TABLE`, then
//! a mount's `covers`, both short locks that spin, under which nothing is dropped.

mod change;
mod configuration;
mod context;
mod copy;
pub mod dentry;
mod detached;
mod flags;
pub mod kinds;
mod moving;
mod namespace;
mod path;
mod propagation;
mod rootfs;
mod settings;
mod spread;
mod table;
mod tree;
mod writers;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use mach::sync::Spin;
use sync::{Error, Result};

pub use change::{Unmount, mount, mount_root, new_detached, unmount};
pub use configuration::{Configuration, Parameter};
pub(crate) use context::with_context;
pub use context::{Contexts, FsContext, context, find_contexts_by};
pub use copy::bind;
pub use dentry::Dentry;
pub use detached::{open_copy, open_detached};
pub use flags::MountFlags;
pub use moving::{pivot_root, relocate};
pub use namespace::{Namespace, first as first_namespace};
pub use path::Path;
pub use propagation::{Group, Propagation, PropagationType};
pub use settings::{Change, change, check_top, share_group};
pub use table::{
    MOST, MOUNTS_MAX, finish_all, for_each, forget_unused_names, give_up_pages, root, shrink,
    sync_all,
};
pub use writers::Writer;

use crate::FileSystem;
pub(super) use rootfs::RootFs;

/// A file system, whatever number of mounts shows it.
pub struct SuperBlock {
    /// Its number, as `f_fsid`.
    pub id: u32,
    /// The file system.
    pub system: Arc<dyn FileSystem>,
    root: Arc<Dentry>,
    is_read_only: AtomicBool,
    writers: AtomicU32,
    /// Those who have found it in the list of mounts (`table`).
    visits: Arc<AtomicUsize>,
}

impl SuperBlock {
    fn new(system: Arc<dyn FileSystem>, is_read_only: bool) -> Self {
        /// The last number given, as no two may be equal.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            root: Dentry::root(system.root(), b"/", system.keeps_names()),
            system,
            is_read_only: AtomicBool::new(is_read_only),
            writers: AtomicU32::new(0),
            visits: Arc::default(),
        }
    }

    /// Whether nothing in it may change.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only.load(Ordering::SeqCst)
    }
}

impl Drop for SuperBlock {
    /// Names hold their directory and are held by it.
    fn drop(&mut self) {
        self.root.forget_all();
    }
}

/// The name of what is mounted, which copies of a mount share.
pub type Source = Arc<Vec<u8>>;

/// A directory or a file of a file system at its place in the tree.
pub struct Mount {
    /// Its number in /proc/self/mountinfo.
    pub id: u32,
    /// What it shows a part of.
    pub block: Arc<SuperBlock>,
    /// The top of what is visible.
    pub root: Arc<Dentry>,
    /// What was mounted, as the program called it.
    pub source: Source,
    /// What it covers; `None` for the top of the tree and for what is not in it.
    covers: Spin<Option<Path>>,
    flags: AtomicU32,
    writers: AtomicU32,
    /// Nobody has entered it since umount2(2) was asked with MNT_EXPIRE.
    is_expiring: AtomicBool,
    propagation: Spin<Propagation>,
    /// What a change of the tree is about (`table::select`).
    is_selected: AtomicBool,
    /// A mount that stays is on it (`spread`).
    carries_more: AtomicBool,
}

impl Mount {
    fn new(block: Arc<SuperBlock>, root: Arc<Dentry>, source: Source, flags: MountFlags) -> Self {
        /// The last number given, as no two may be equal in /proc/self/mountinfo.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            block,
            root,
            source,
            covers: Spin::new(None),
            flags: AtomicU32::new(flags.bits()),
            writers: AtomicU32::new(0),
            is_expiring: AtomicBool::new(false),
            propagation: Spin::default(),
            is_selected: AtomicBool::new(false),
            carries_more: AtomicBool::new(false),
        }
    }

    /// All of `block`, at no place yet.
    fn whole(block: Arc<SuperBlock>, source: Source, flags: MountFlags) -> Self {
        let root = block.root.clone();
        Self::new(block, root, source, flags)
    }

    /// A mount that is nowhere in the tree: for memfd and pipes' like.
    pub fn hidden(system: Arc<dyn FileSystem>) -> Arc<Self> {
        let block = Arc::new(SuperBlock::new(system, false));
        Arc::new(Self::whole(block, Source::default(), MountFlags::empty()))
    }

    /// What it covers.
    pub fn covers(&self) -> Option<Path> {
        self.covers.lock().clone()
    }

    /// How it is mounted.
    pub fn flags(&self) -> MountFlags {
        MountFlags::from_bits_retain(self.flags.load(Ordering::SeqCst))
    }

    /// Whether it forbids this.
    pub fn has(&self, flag: MountFlags) -> bool {
        self.flags().contains(flag)
    }

    /// Whether nothing may change, because of the mount or of the file system.
    pub fn is_read_only(&self) -> bool {
        self.has(MountFlags::RDONLY) || self.block.is_read_only()
    }

    /// Refuses changes where the mount is read-only.
    pub fn check_writable(&self) -> Result<()> {
        match self.is_read_only() {
            true => Err(Error::ReadOnly),
            false => Ok(()),
        }
    }

    fn is_selected(&self) -> bool {
        self.is_selected.load(Ordering::Relaxed)
    }

    fn set_selected(&self, selected: bool) {
        self.is_selected.store(selected, Ordering::Relaxed);
    }

    /// Somebody entered it: an unmount that waits for nobody to do so has to wait again.
    pub(super) fn mark_entered(&self) {
        if self.is_expiring.load(Ordering::Relaxed) {
            self.is_expiring.store(false, Ordering::Relaxed);
        }
    }
}
