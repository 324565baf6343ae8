//! mount(2) of a file system, umount2(2).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use mach::mem::fallible;
use sync::{Error, Result};

use super::RootFs;
use super::context;
use super::spread::{self, Echoes};
use super::table::{self, CHANGING};
use super::tree::Tree;
use super::{Mount, MountFlags, Path, SuperBlock, namespace};
use crate::FileSystem;

/// Which mounts umount2(2) takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmount {
    /// Those that nobody uses.
    Unused,
    /// Those that nobody uses or has entered since the last try (MNT_EXPIRE).
    Expired,
    /// All, with what is mounted below; who uses them goes on (MNT_DETACH).
    Lazily,
}

/// Makes `system` the top of the tree; once at boot, before any program.
pub fn mount_root(system: Arc<dyn FileSystem>) -> Result<()> {
    let rootfs = Mount::hidden(RootFs::new());
    let block = fallible::arc(SuperBlock::new(system, false))?;
    let source = fallible::arc(b"rootfs".to_vec())?;
    let mount = fallible::arc(Mount::whole(block, source, MountFlags::RELATIME))?;
    table::reserve(2, 1)?;
    table::add(&rootfs);
    table::add(&mount);
    table::attach(&mount, Path::top_of(&rootfs));
    table::set_root(Path::top_of(&mount));
    namespace::begin(&rootfs);
    Ok(())
}

/// Covers `at` with `system`.
///
/// Errors: `NotDirectory`, `Busy` if that very system covers it already, `NotFound`, `Invalid`,
/// `NoSpace`, `OutOfMemory`.
pub fn mount(
    at: Path,
    system: Arc<dyn FileSystem>,
    source: &[u8],
    flags: MountFlags,
) -> Result<()> {
    let _still = CHANGING.lock();
    let mount = new_mount(system, source, flags, flags.contains(MountFlags::RDONLY))?;
    let at = mount_point(at, &mount)?;
    if at.is_mount_top() && Arc::ptr_eq(&at.mount.block, &mount.block) {
        return Err(Error::Busy);
    }
    mount_at(&Tree::of(mount)?, at)
}

/// Mounts a tree that is new at `at`, and for all who are told of it.
///
/// Errors: `NoSpace`, `NotFound`, `OutOfMemory`; then nothing has changed.
pub(super) fn mount_at(tree: &Tree, at: Path) -> Result<()> {
    let echoes = Echoes::plan(tree, &at)?;
    let count = tree.len() + echoes.len();
    table::reserve(count, count)?;
    let at = at.pinned()?;
    tree.list();
    table::attach(tree.top(), at.clone());
    echoes.mount(tree, &at.dentry);
    Ok(())
}

/// A mount of `system`, at no place yet. All mounts of one system have the same super block:
/// that knows its names.
///
/// Errors: `OutOfMemory`.
fn new_mount(
    system: Arc<dyn FileSystem>,
    source: &[u8],
    flags: MountFlags,
    is_read_only: bool,
) -> Result<Arc<Mount>> {
    let source = fallible::arc(fallible::copied(source)?)?;
    let block = match table::block_of(&system) {
        Some(known) => known,
        None => fallible::arc(SuperBlock::new(system, is_read_only))?,
    };
    Ok(fallible::arc(Mount::whole(block, source, flags))?)
}

/// Mounts `system` at no place yet.
///
/// Errors: `NoSpace`, `OutOfMemory`.
pub fn new_detached(
    system: Arc<dyn FileSystem>,
    source: &[u8],
    flags: MountFlags,
    is_read_only: bool,
) -> Result<Arc<Mount>> {
    let _still = CHANGING.lock();
    let mount = new_mount(system, source, flags, is_read_only)?;
    table::reserve(1, 0)?;
    table::add(&mount);
    Ok(mount)
}

/// Where something can be mounted that is to cover `at`: on top of all that covers it already.
///
/// Errors: `Invalid` outside of the tree, `NotFound` where the name is gone, `NotDirectory` if
/// only one of both is a directory.
pub(super) fn mount_point(at: Path, mount: &Mount) -> Result<Path> {
    let at = at.enter_mounts();
    if !table::is_in_tree(&at.mount) {
        return Err(Error::Invalid);
    }
    if at.dentry.is_gone() {
        return Err(Error::NotFound);
    }
    if at.dentry.is_directory() != mount.root.is_directory() {
        return Err(Error::NotDirectory);
    }
    Ok(at)
}

/// Takes away the mount whose top `at` is.
///
/// Errors: `Invalid` if it is no such top, `Busy`, `WouldBlock` for one that was not waiting to
/// expire, and what writing back comes across.
pub fn unmount(at: &Path, how: Unmount) -> Result<()> {
    let _still = CHANGING.lock();
    let mount = &at.mount;
    if !at.is_mount_top() || !table::is_in_tree(mount) {
        return Err(Error::Invalid);
    }
    let is_own_root = Arc::ptr_eq(&context().root().mount, mount);
    match how {
        Unmount::Expired if is_own_root => return Err(Error::Invalid),
        // The program needs it: it can only be made safe to switch off.
        Unmount::Unused if is_own_root => return mount.block.set_read_only(true),
        Unmount::Lazily => {}
        Unmount::Unused | Unmount::Expired => check_unused(mount)?,
    }
    if how == Unmount::Expired && !mount.is_expiring.swap(true, Ordering::Relaxed) {
        return Err(Error::WouldBlock);
    }
    table::select(mount);
    spread::select_echoes()?;
    if how != Unmount::Lazily {
        check_echoes_unused(mount)?;
    }
    for going in table::selected() {
        going.block.system.sync()?;
    }
    table::remove_selected();
    Ok(())
}

/// Who holds a mount that nobody uses: the list, the map and who asks.
const HOLDERS: usize = 3;

fn check_unused(mount: &Arc<Mount>) -> Result<()> {
    table::select(mount);
    match table::selected().count() > 1 || Arc::strong_count(mount) > HOLDERS {
        true => Err(Error::Busy),
        false => Ok(()),
    }
}

/// The same for those selected with `mount`; what covers the top of one holds it, too, and stays.
fn check_echoes_unused(mount: &Arc<Mount>) -> Result<()> {
    let mut echoes = table::selected().filter(|echo| !Arc::ptr_eq(echo, mount));
    let is_used = |echo: &Arc<Mount>| {
        let is_covered = table::covering(&Path::top_of(echo)).is_some();
        Arc::strong_count(echo) > HOLDERS + usize::from(is_covered)
    };
    match echoes.any(|echo| is_used(&echo)) {
        true => Err(Error::Busy),
        false => Ok(()),
    }
}
