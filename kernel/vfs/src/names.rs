//! Changes of the tree: create, link, remove, move.
//!
//! Each change holds the sleeping lock of its directory (two of them in the order of
//! their addresses, under [`MOVING`]), checks rights, asks the inode, then brings the
//! dentry cache up to date and tells watchers.

use alloc::sync::Arc;

use sync::{Error, Mutex, Result};

use super::access::{EXECUTE, Subject, WRITE, Who};
use super::walk::LastComponent;
use super::{Dentry, FileType, InodeRef, New, Path, notify};

/// Held by every rename: two of them could make a directory its own ancestor. One for all, as
/// one file system may be mounted twice with dentries that know nothing of each other.
static MOVING: Mutex<()> = Mutex::new(());

/// What a program asks to create.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Kind of file.
    pub kind: FileType,
    /// Permission bits before the umask.
    pub mode: u32,
    /// A device's number.
    pub device: u64,
    /// A symbolic link's text.
    pub target: &'a [u8],
}

impl Wanted<'_> {
    /// A file of this kind and mode.
    pub fn new(kind: FileType, mode: u32) -> Self {
        Self {
            kind,
            mode,
            device: 0,
            target: &[],
        }
    }

    /// With owner and umask of the current thread, in a directory.
    pub fn as_new(&self, directory: &InodeRef) -> Result<New<'_>> {
        let (uid, gid) = Subject::current(Who::Effective).ids();
        let parent = directory.metadata()?;
        // In a directory with the set-group-id bit files get its group.
        let inherits = parent.mode & 0o2000 != 0;
        let is_directory = self.kind == FileType::Directory;
        let umask = crate::mount::with_context(|context| context.umask());
        let masked = if self.kind == FileType::Symlink {
            0o777
        } else {
            self.mode & !umask
        };
        Ok(New {
            kind: self.kind,
            mode: masked & 0o7777 | if inherits && is_directory { 0o2000 } else { 0 },
            uid,
            gid: if inherits { parent.gid } else { gid },
            device: self.device,
            target: self.target,
        })
    }
}

/// Creates a file at a free component.
pub fn create(component: &LastComponent, wanted: &Wanted<'_>) -> Result<Path> {
    let directory = &component.directory;
    if component.name.is_empty() {
        return Err(Error::Exists);
    }
    let _still = directory.dentry.lock_names()?;
    if directory
        .dentry
        .child_while_locked(&component.name)?
        .is_some()
    {
        return Err(Error::Exists);
    }
    if component.wants_directory && wanted.kind != FileType::Directory {
        return Err(Error::NotFound);
    }
    create_while_locked(directory, &component.name, wanted)
}

/// [`create`] for a caller that holds the directory's lock and knows the name is free.
pub(super) fn create_while_locked(
    directory: &Path,
    name: &[u8],
    wanted: &Wanted<'_>,
) -> Result<Path> {
    let inode = directory.inode();
    add_while_locked(directory, name, || {
        inode.create(name, &wanted.as_new(inode)?)
    })
}

/// The same for what `make` puts into the directory.
pub fn add_while_locked(
    directory: &Path,
    name: &[u8],
    make: impl FnOnce() -> Result<InodeRef>,
) -> Result<Path> {
    check_change(directory)?;
    let dentry = add(directory, name, make()?);
    Ok(Path {
        mount: directory.mount.clone(),
        dentry,
    })
}

/// Creates a file for the kernel: nobody is asked for rights, and `new` says whose it is.
pub fn create_by_kernel(component: &LastComponent, new: &New<'_>) -> Result<()> {
    let directory = &component.directory;
    let _still = directory.dentry.lock_names()?;
    if directory
        .dentry
        .child_while_locked(&component.name)?
        .is_some()
    {
        return Err(Error::Exists);
    }
    let inode = directory.inode().create(&component.name, new)?;
    add(directory, &component.name, inode);
    Ok(())
}

/// Gives the file at `old` one more name.
pub fn link(old: &Path, component: &LastComponent) -> Result<()> {
    let directory = &component.directory;
    if !Arc::ptr_eq(&old.mount, &directory.mount) {
        return Err(Error::CrossDevice);
    }
    if old.dentry.is_directory() {
        return Err(Error::NotPermitted);
    }
    if component.name.is_empty() {
        return Err(Error::Exists);
    }
    let _still = directory.dentry.lock_names()?;
    if directory
        .dentry
        .child_while_locked(&component.name)?
        .is_some()
    {
        return Err(Error::Exists);
    }
    if component.wants_directory {
        return Err(Error::NotFound);
    }
    check_change(directory)?;
    directory.inode().link(&component.name, old.inode())?;
    notify::links_changed(old.inode());
    add(directory, &component.name, old.inode().clone());
    Ok(())
}

fn add(directory: &Path, name: &[u8], inode: InodeRef) -> Arc<Dentry> {
    let dentry = directory.dentry.detached(name, inode);
    directory.dentry.remember(name, Some(dentry.clone()));
    notify::created(&directory.dentry, &dentry, name);
    dentry
}

/// Removes the name of a file that is no directory.
pub fn unlink(component: &LastComponent) -> Result<()> {
    if component.name.is_empty() {
        return Err(Error::IsDirectory);
    }
    let (directory, name) = (&component.directory, &component.name);
    let _still = directory.dentry.lock_names()?;
    let dentry = directory
        .dentry
        .child_while_locked(name)?
        .ok_or(Error::NotFound)?;
    if dentry.is_directory() {
        return Err(Error::IsDirectory);
    }
    if component.wants_directory {
        return Err(Error::NotDirectory);
    }
    check_removal(directory, &dentry)?;
    directory.inode().unlink(name)?;
    remove(directory, name, &dentry);
    Ok(())
}

/// Removes what [`create_by_kernel`] made, if it is still there.
pub fn unlink_by_kernel(component: &LastComponent) -> Result<()> {
    let (directory, name) = (&component.directory, &component.name);
    let _still = directory.dentry.lock_names()?;
    let found = directory.dentry.child_while_locked(name)?;
    let dentry = found.ok_or(Error::NotFound)?;
    directory.inode().unlink(name)?;
    remove(directory, name, &dentry);
    Ok(())
}

/// Removes an empty directory.
pub fn rmdir(component: &LastComponent) -> Result<()> {
    if component.name.is_empty() {
        return Err(Error::Busy);
    }
    let (directory, name) = (&component.directory, &component.name);
    let _still = directory.dentry.lock_names()?;
    let dentry = directory
        .dentry
        .child_while_locked(name)?
        .ok_or(Error::NotFound)?;
    if !dentry.is_directory() {
        return Err(Error::NotDirectory);
    }
    check_removal(directory, &dentry)?;
    directory.inode().rmdir(name)?;
    remove(directory, name, &dentry);
    Ok(())
}

fn remove(directory: &Path, name: &[u8], dentry: &Arc<Dentry>) {
    directory.dentry.remember(name, None);
    dentry.set_gone();
    notify::removed(&directory.dentry, dentry, name);
}

/// How rename(2) treats an existing target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// It is replaced.
    Yes,
    /// The call fails.
    No,
    /// Both change places.
    Exchange,
}

/// Moves a name.
pub fn rename(from: &LastComponent, to: &LastComponent, replace: Replace) -> Result<()> {
    if !Arc::ptr_eq(&from.directory.mount, &to.directory.mount) {
        return Err(Error::CrossDevice);
    }
    if from.name.is_empty() || to.name.is_empty() {
        return Err(match replace {
            Replace::No if !from.name.is_empty() => Error::Exists,
            _ => Error::Busy,
        });
    }
    let _moving = MOVING.lock();
    let _still = lock_both(&from.directory.dentry, &to.directory.dentry)?;
    let moved = from
        .directory
        .dentry
        .child_while_locked(&from.name)?
        .ok_or(Error::NotFound)?;
    let target = to.directory.dentry.child_while_locked(&to.name)?;
    if target.is_some() && replace == Replace::No {
        return Err(Error::Exists);
    }
    if target
        .as_ref()
        .is_some_and(|target| is_same(target, &moved))
    {
        return Ok(());
    }
    check_rename(from, to, &moved, target.as_ref(), replace)?;
    let exchange = replace == Replace::Exchange;
    from.directory
        .inode()
        .rename(&from.name, to.directory.inode(), &to.name, exchange)?;
    settle_rename(from, to, &moved, target, exchange);
    Ok(())
}

type Held<'a> = (sync::MutexGuard<'a, ()>, Option<sync::MutexGuard<'a, ()>>);

fn lock_both<'a>(one: &'a Arc<Dentry>, two: &'a Arc<Dentry>) -> Result<Held<'a>> {
    if Arc::ptr_eq(one, two) {
        return Ok((one.lock_names()?, None));
    }
    let (first, second) = if Arc::as_ptr(one) < Arc::as_ptr(two) {
        (one, two)
    } else {
        (two, one)
    };
    Ok((first.lock_names()?, Some(second.lock_names()?)))
}

fn is_same(one: &Arc<Dentry>, two: &Arc<Dentry>) -> bool {
    Arc::ptr_eq(one.inode(), two.inode())
}

fn check_rename(
    from: &LastComponent,
    to: &LastComponent,
    moved: &Arc<Dentry>,
    target: Option<&Arc<Dentry>>,
    replace: Replace,
) -> Result<()> {
    check_removal(&from.directory, moved)?;
    check_change(&to.directory)?;
    if (from.wants_directory || to.wants_directory) && !moved.is_directory() {
        return Err(Error::NotDirectory);
    }
    if moved.is_above(&to.directory.dentry) {
        return Err(Error::Invalid);
    }
    match (target, replace) {
        (None, Replace::Exchange) => Err(Error::NotFound),
        (None, _) => Ok(()),
        (Some(target), Replace::Exchange) => match target.is_above(&from.directory.dentry) {
            true => Err(Error::Invalid),
            false => check_removal(&to.directory, target),
        },
        (Some(target), Replace::Yes | Replace::No) => {
            match (moved.is_directory(), target.is_directory()) {
                (true, false) => Err(Error::NotDirectory),
                (false, true) => Err(Error::IsDirectory),
                _ if target.is_above(&from.directory.dentry) => Err(Error::NotEmpty),
                _ => check_removal(&to.directory, target),
            }
        }
    }
}

fn settle_rename(
    from: &LastComponent,
    to: &LastComponent,
    moved: &Arc<Dentry>,
    target: Option<Arc<Dentry>>,
    exchange: bool,
) {
    let (old, new) = (&from.directory.dentry, &to.directory.dentry);
    moved.move_to(new, &to.name);
    new.remember(&to.name, Some(moved.clone()));
    match target {
        Some(target) if exchange => {
            target.move_to(old, &from.name);
            old.remember(&from.name, Some(target));
        }
        other => {
            old.remember(&from.name, None);
            if let Some(replaced) = other {
                replaced.set_gone();
                notify::replaced(&replaced);
            }
        }
    }
    notify::moved(old, &from.name, new, &to.name, moved);
}

/// Whether the current thread may change names in `directory`.
fn check_change(directory: &Path) -> Result<()> {
    directory.mount.check_writable()?;
    if directory.dentry.is_gone() {
        return Err(Error::NotFound);
    }
    let metadata = directory.inode().metadata()?;
    Subject::current(Who::Effective).check(&metadata, WRITE | EXECUTE)
}

/// Whether it may remove this name.
fn check_removal(directory: &Path, dentry: &Arc<Dentry>) -> Result<()> {
    check_change(directory)?;
    if dentry.is_mounted_on() {
        return Err(Error::Busy);
    }
    let (parent, file) = (directory.inode().metadata()?, dentry.inode().metadata()?);
    Subject::current(Who::Effective).check_sticky(&parent, &file)
}
