//! open(2): from a path to an open file.

use alloc::sync::Arc;

use bitflags::bitflags;
use mach::sync::Once;
use sync::{Error, Result};

use super::access::{EXECUTE, READ, Subject, WRITE, Who, is_above_permissions};
use super::mount::Writer;
use super::names::{Wanted, create_while_locked};
use super::walk::{LastComponent, resolve_parent};
use super::{
    Attachment, FileType, InodeRef, MountFlags, Path, Walk, access_times, notify, resolve, set_ids,
};
use crate::devices;
use crate::file::{FileRef, OpenFile, StatusFlags};

bitflags! {
    /// What open(2) does besides opening.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CreationFlags: u32 {
        /// A missing file is created.
        const CREATE = 1;
        /// With `CREATE`: an existing one is an error.
        const EXCLUSIVE = 2;
        /// The file loses its bytes.
        const TRUNCATE = 4;
        /// It must be a directory.
        const DIRECTORY = 8;
        /// A link at the end is not followed.
        const NO_FOLLOW = 16;
        /// A file without a name is made in this directory.
        const NAMELESS = 32;
    }
}

/// How to open.
#[derive(Clone, Copy, Debug)]
pub struct OpenHow {
    /// What happens at opening.
    pub creation: CreationFlags,
    /// What stays with the open file.
    pub status: StatusFlags,
    /// Permission bits of a new file.
    pub mode: u32,
    /// Limits of the walk.
    pub walk: Walk,
}

impl OpenHow {
    /// For reading.
    pub const READ: Self = Self {
        creation: CreationFlags::empty(),
        status: StatusFlags::empty(),
        mode: 0,
        walk: Walk::empty(),
    };
}

/// Links at the end of a path that O_CREAT follows.
const LINKS_MAX: u32 = 40;

/// Opens what `path` names.
pub fn open(start: Option<&Path>, path: &[u8], how: &OpenHow) -> Result<Arc<OpenFile>> {
    if how.creation.contains(CreationFlags::CREATE) {
        return open_or_create(start, path, how);
    }
    let mut walk = how.walk;
    walk.set(
        Walk::FOLLOW,
        !how.creation.contains(CreationFlags::NO_FOLLOW),
    );
    walk.set(
        Walk::DIRECTORY,
        how.creation.contains(CreationFlags::DIRECTORY),
    );
    open_path(resolve(start, path, walk)?, how)
}

/// Opens a program or its interpreter: a regular file with the right to execute.
pub fn open_for_exec(start: Option<&Path>, path: &[u8], walk: Walk) -> Result<Arc<OpenFile>> {
    let place = resolve(start, path, walk)?;
    if place.inode().kind() == FileType::Symlink {
        return Err(Error::TooManySymlinks);
    }
    let denied = place.mount.has(MountFlags::NOEXEC);
    if place.inode().kind() != FileType::Regular || denied {
        return Err(Error::AccessDenied);
    }
    Subject::current(Who::Effective).check(&place.inode().metadata()?, EXECUTE)?;
    Ok(OpenFile::at(
        place.inode().clone(),
        StatusFlags::empty(),
        place,
    ))
}

fn open_or_create(start: Option<&Path>, path: &[u8], how: &OpenHow) -> Result<Arc<OpenFile>> {
    let mut component = resolve_parent(start, path, how.walk)?;
    for _ in 0..LINKS_MAX {
        if component.name.is_empty() || component.wants_directory {
            return Err(Error::IsDirectory);
        }
        let place = match existing_or_new(&component, how)? {
            Found::New(place) => return open_new(place, how),
            Found::Existing(place) => place,
        };
        if place.dentry.kind() != FileType::Symlink {
            return open_path(place, how);
        }
        if how.creation.contains(CreationFlags::NO_FOLLOW) {
            return Err(Error::TooManySymlinks);
        }
        if let Some(target) = place.inode().jump() {
            return open_path(target?, how);
        }
        let target = place.inode().read_link()?;
        access_times::note(&place);
        component = resolve_parent(Some(&component.directory), &target, how.walk)?;
    }
    Err(Error::TooManySymlinks)
}

enum Found {
    New(Path),
    Existing(Path),
}

fn existing_or_new(component: &LastComponent, how: &OpenHow) -> Result<Found> {
    let directory = &component.directory;
    let exclusive = how.creation.contains(CreationFlags::EXCLUSIVE);
    let existing = |dentry| {
        let place = Path {
            mount: directory.mount.clone(),
            dentry,
        };
        if exclusive {
            Err(Error::Exists)
        } else {
            Ok(Found::Existing(place.enter_mounts()))
        }
    };
    if let Some(dentry) = directory.dentry.child(&component.name)? {
        return existing(dentry);
    }
    let _still = directory.dentry.lock_names()?;
    if let Some(dentry) = directory.dentry.child_while_locked(&component.name)? {
        return existing(dentry);
    }
    let wanted = Wanted::new(FileType::Regular, how.mode & 0o7777);
    match create_while_locked(directory, &component.name, &wanted) {
        // Who else has the folder made it since we looked.
        Err(Error::Exists) if !exclusive => {
            match directory.dentry.child_while_locked(&component.name)? {
                Some(dentry) => existing(dentry),
                None => Err(Error::Exists),
            }
        }
        made => made.map(Found::New),
    }
}

/// Opens what was just created: its mode does not bind its creator.
fn open_new(place: Path, how: &OpenHow) -> Result<Arc<OpenFile>> {
    let opened = OpenFile::at(place.inode().clone(), how.status, place);
    notify::opened(&opened);
    Ok(opened)
}

/// Opens what is at `place`.
pub fn open_path(place: Path, how: &OpenHow) -> Result<Arc<OpenFile>> {
    let kind = place.dentry.kind();
    if how.creation.contains(CreationFlags::DIRECTORY) && kind != FileType::Directory {
        return Err(Error::NotDirectory);
    }
    if how.status.contains(StatusFlags::PATH) {
        return Ok(OpenFile::at(place.inode().clone(), how.status, place));
    }
    if how.creation.contains(CreationFlags::NAMELESS) {
        return open_nameless(&place, how);
    }
    check_kind(&place, how)?;
    let changes = kind == FileType::Regular && writes(how);
    let _writer = changes.then(|| Writer::begin(&place.mount)).transpose()?;
    check_rights(&place, how)?;
    if let Some(open) = place.inode().reopen() {
        return Ok(OpenFile::new(open.file.clone(), how.status));
    }
    let file = file_of(&place, how.status)?;
    if how.creation.contains(CreationFlags::TRUNCATE) && kind == FileType::Regular {
        set_ids::shed(&**place.inode())?;
        place.inode().truncate(0)?;
        notify::changed(&place.dentry, notify::Mask::MODIFY);
    } else if changes {
        place.inode().prepare_change()?;
    }
    let opened = OpenFile::at(file, how.status, place);
    notify::opened(&opened);
    Ok(opened)
}

fn writes(how: &OpenHow) -> bool {
    how.status
        .intersects(StatusFlags::WRONLY | StatusFlags::RDWR)
        || how.creation.contains(CreationFlags::TRUNCATE)
}

fn check_kind(place: &Path, how: &OpenHow) -> Result<()> {
    let creates = how.creation.contains(CreationFlags::CREATE);
    match place.dentry.kind() {
        FileType::Symlink => Err(Error::TooManySymlinks),
        FileType::Directory if writes(how) || creates => Err(Error::IsDirectory),
        FileType::Socket => Err(Error::NoSuchDevice),
        FileType::CharDevice | FileType::BlockDevice if place.mount.has(MountFlags::NODEV) => {
            Err(Error::AccessDenied)
        }
        _ => Ok(()),
    }
}

fn check_rights(place: &Path, how: &OpenHow) -> Result<()> {
    if is_above_permissions() && !how.status.contains(StatusFlags::NOATIME) {
        return Ok(());
    }
    let subject = Subject::current(Who::Effective);
    let write = if writes(how) { WRITE } else { 0 };
    let read = if how.status.contains(StatusFlags::WRONLY) {
        0
    } else {
        READ
    };
    let metadata = place.inode().metadata()?;
    if how.status.contains(StatusFlags::NOATIME) {
        subject.check_owner(&metadata)?;
    }
    match subject.check(&metadata, read | write) {
        Err(_) if place.inode().is_open_to_caller() => Ok(()),
        result => result,
    }
}

fn file_of(place: &Path, status: StatusFlags) -> Result<FileRef> {
    let inode = place.inode();
    if let Some(opened) = inode.open() {
        return opened;
    }
    match place.dentry.kind() {
        FileType::CharDevice => devices::open(inode.metadata()?.node, status),
        FileType::BlockDevice => devices::open_disk(inode.metadata()?.node, status),
        FileType::Fifo => open_fifo(inode, status),
        _ => Ok(inode.clone()),
    }
}

/// Opens a FIFO, whose pipe hangs on the attachment of its inode.
type OpenFifo = fn(&Attachment, StatusFlags) -> Result<FileRef>;

/// Said once at boot by who makes pipes.
static OPEN_FIFO: Once<OpenFifo> = Once::new();

/// Says how FIFOs open; once at boot, by who makes pipes.
pub fn register_fifo(open: OpenFifo) {
    OPEN_FIFO.call_once(|| open);
}

fn open_fifo(inode: &InodeRef, status: StatusFlags) -> Result<FileRef> {
    let attachment = inode.attachment().ok_or(Error::NoSuchDevice)?;
    let open = OPEN_FIFO.get().ok_or(Error::NoSuchDevice)?;
    open(attachment, status)
}

/// Makes a file without a name in the directory `place` (O_TMPFILE).
fn open_nameless(place: &Path, how: &OpenHow) -> Result<Arc<OpenFile>> {
    if !how
        .status
        .intersects(StatusFlags::WRONLY | StatusFlags::RDWR)
    {
        return Err(Error::Invalid);
    }
    place.mount.check_writable()?;
    Subject::current(Who::Effective).check(&place.inode().metadata()?, WRITE | EXECUTE)?;
    let wanted = Wanted::new(FileType::Regular, how.mode);
    let inode = place
        .inode()
        .create_nameless(&wanted.as_new(place.inode())?)?;
    let name = alloc::format!("#{}", inode.metadata()?.number);
    let dentry = place.dentry.detached(name.as_bytes(), inode.clone());
    dentry.set_gone();
    Ok(OpenFile::at(
        inode,
        how.status,
        Path {
            mount: place.mount.clone(),
            dentry,
        },
    ))
}
