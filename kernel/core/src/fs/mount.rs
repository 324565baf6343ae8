//! Where file systems hang in the tree.
//!
//! There is one tree for all programs. A [`Mount`] covers a directory; a [`Path`] is a
//! dentry and the mount through which it was reached, so that `..` at the top of a mount
//! leads out of it. A dentry carries a flag whether anything is mounted on it; only then
//! is the table searched.
//!
//! Lock order: the table's spin lock is innermost.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use mach::sync::{Once, Spin};

use super::{Dentry, FileSystem, InodeRef};
use crate::error::{Error, Result};

/// Mounts at the same time.
const MOUNTS_MAX: usize = 1024;

bitflags! {
    /// How a file system is mounted; the bits are Linux' `MS_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct MountFlags: u32 {
        /// Nothing may change.
        const RDONLY = 1;
        /// Set-id bits mean nothing.
        const NOSUID = 2;
        /// Devices' nodes cannot be opened.
        const NODEV = 4;
        /// Programs cannot be executed.
        const NOEXEC = 8;
        /// Reads do not set access times.
        const NOATIME = 1024;
    }
}

/// A file system at its place in the tree.
pub struct Mount {
    /// Its number in /proc/self/mountinfo.
    pub id: u32,
    /// The file system.
    pub system: Arc<dyn FileSystem>,
    /// The top of what is visible of it.
    pub root: Arc<Dentry>,
    /// What it covers; `None` for the root of the tree.
    pub covers: Option<Path>,
    /// What was mounted, as the program called it.
    pub source: Vec<u8>,
    /// How.
    pub flags: MountFlags,
}

impl Mount {
    fn new(
        system: Arc<dyn FileSystem>,
        covers: Option<Path>,
        source: &[u8],
        flags: MountFlags,
    ) -> Arc<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let root = Dentry::root(system.root(), b"/", system.keeps_names());
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            id,
            system,
            root,
            covers,
            source: source.into(),
            flags,
        })
    }

    /// A mount that is nowhere in the tree: for memfd and pipes' like.
    pub fn hidden(system: Arc<dyn FileSystem>) -> Arc<Self> {
        Self::new(system, None, b"none", MountFlags::empty())
    }

    /// Refuses changes where the mount is read-only.
    pub fn check_writable(&self) -> Result<()> {
        if self.flags.contains(MountFlags::RDONLY) {
            Err(Error::ReadOnly)
        } else {
            Ok(())
        }
    }
}

/// A place in the tree.
#[derive(Clone)]
pub struct Path {
    /// The mount through which it was reached.
    pub mount: Arc<Mount>,
    /// The name.
    pub dentry: Arc<Dentry>,
}

/// Names of a path that are shown, from its end: longer paths are too long for all who ask
/// (PATH_MAX).
const SHOWN_MAX: usize = 2048;

impl Path {
    /// The top of `mount`.
    pub fn top_of(mount: &Arc<Mount>) -> Self {
        Self {
            mount: mount.clone(),
            dentry: mount.root.clone(),
        }
    }

    /// What is there.
    pub fn inode(&self) -> &InodeRef {
        self.dentry.inode()
    }

    /// Whether both are the same place.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dentry, &other.dentry) && Arc::ptr_eq(&self.mount, &other.mount)
    }

    /// Whether it is the top of its mount.
    pub fn is_mount_top(&self) -> bool {
        Arc::ptr_eq(&self.dentry, &self.mount.root)
    }

    /// The place one level up; at the top of the tree, itself.
    pub fn parent(&self) -> Self {
        let mut at = self.clone();
        while at.is_mount_top() {
            match at.mount.covers.clone() {
                Some(covered) => at = covered,
                None => return at,
            }
        }
        match at.dentry.parent() {
            Some(dentry) => Self {
                dentry,
                mount: at.mount,
            },
            None => at,
        }
    }

    /// The same place with what is mounted on it.
    pub fn enter_mounts(mut self) -> Self {
        while self.dentry.is_mounted_on() {
            match TREE
                .lock()
                .iter()
                .rev()
                .find(|mount| mount.is_on(&self))
                .cloned()
            {
                Some(mount) => self = Self::top_of(&mount),
                None => break,
            }
        }
        self
    }

    /// The name from `root` on, as getcwd(2) and /proc show it.
    pub fn name_from(&self, root: &Path) -> Vec<u8> {
        let mut parts = Vec::new();
        let mut at = self.clone();
        while !at.is(root) && parts.len() < SHOWN_MAX {
            let named = at.below_mounts();
            if named.dentry.parent().is_none() {
                break;
            }
            parts.push(named.dentry.name());
            at = at.parent();
        }
        let mut name = Vec::new();
        for part in parts.iter().rev() {
            name.push(b'/');
            name.extend_from_slice(part);
        }
        match (
            name.is_empty(),
            self.mount.covers.is_none() && !is_root(&self.mount),
        ) {
            (true, true) => self.dentry.name().to_vec(),
            (true, false) => b"/".to_vec(),
            (false, _) => name,
        }
    }

    /// The name from the top of the tree.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.name_from(&root());
        if self.dentry.is_gone() {
            name.extend_from_slice(b" (deleted)");
        }
        name
    }

    /// The place under all mounts whose top this is.
    fn below_mounts(&self) -> Self {
        let mut at = self.clone();
        while at.is_mount_top() {
            match at.mount.covers.clone() {
                Some(covered) => at = covered,
                None => break,
            }
        }
        at
    }
}

impl Mount {
    fn is_on(&self, place: &Path) -> bool {
        self.covers
            .as_ref()
            .is_some_and(|covered| covered.is(place))
    }
}

static ROOT: Once<Path> = Once::new();
static TREE: Spin<Vec<Arc<Mount>>> = Spin::new(Vec::new());

/// Makes `system` the top of the tree; once at boot, before any program.
pub fn mount_root(system: Arc<dyn FileSystem>) {
    ROOT.call_once(|| {
        let mount = Mount::new(system, None, b"rootfs", MountFlags::empty());
        TREE.lock().push(mount.clone());
        Path::top_of(&mount)
    });
}

/// The top of the tree.
pub fn root() -> Path {
    match ROOT.get() {
        Some(root) => root.clone(),
        None => unreachable!("boot mounts the root before it starts a program"),
    }
}

fn is_root(mount: &Arc<Mount>) -> bool {
    ROOT.get()
        .is_some_and(|root| Arc::ptr_eq(&root.mount, mount))
}

/// Covers the directory `at` with `system`.
pub fn mount(
    at: Path,
    system: Arc<dyn FileSystem>,
    source: &[u8],
    flags: MountFlags,
) -> Result<()> {
    if !at.dentry.is_directory() {
        return Err(Error::NotDirectory);
    }
    let mount = Mount::new(system, Some(at.clone()), source, flags);
    let mut tree = TREE.lock();
    if tree.len() >= MOUNTS_MAX {
        return Err(Error::NoSpace);
    }
    at.dentry.set_mounted_on(true);
    tree.push(mount);
    Ok(())
}

/// Takes away the mount whose top `at` is; it must be unused unless `lazy`.
pub fn unmount(at: &Path, lazy: bool) -> Result<()> {
    let covered = at
        .mount
        .covers
        .clone()
        .filter(|_| at.is_mount_top())
        .ok_or(Error::Invalid)?;
    at.mount.system.sync()?;
    let gone = {
        let mut tree = TREE.lock();
        let position = tree
            .iter()
            .position(|mount| Arc::ptr_eq(mount, &at.mount))
            .ok_or(Error::Invalid)?;
        let has_mounts = tree.iter().any(|mount| {
            mount
                .covers
                .as_ref()
                .is_some_and(|path| Arc::ptr_eq(&path.mount, &at.mount))
        });
        // The table, and the caller's `at`.
        if !lazy && (has_mounts || Arc::strong_count(&at.mount) > 2) {
            return Err(Error::Busy);
        }
        let gone = tree.remove(position);
        covered
            .dentry
            .set_mounted_on(tree.iter().any(|mount| mount.is_on(&covered)));
        gone
    };
    gone.root.forget_all();
    Ok(())
}

/// Memory is short: forgets names and pages that nobody uses.
pub fn shrink() {
    for index in 0.. {
        let mount = TREE.lock().get(index).cloned();
        let Some(mount) = mount else { return };
        mount.root.forget_unused();
        mount.system.forget_clean_pages();
    }
}

/// All mounts, the oldest first.
pub fn mounts() -> Vec<Arc<Mount>> {
    TREE.lock().clone()
}

/// Writes back all file systems.
pub fn sync_all() -> Result<()> {
    let failed = mounts()
        .iter()
        .map(|mount| mount.system.sync())
        .find(Result::is_err);
    failed.unwrap_or(Ok(()))
}
