//! The root of programs on a disk or in a folder of the host.
//!
//! The machine begins on the image that the host packed. Here the root is mounted, takes over the file systems
//! that the kernel made below the image's, and changes places with it (pivot_root(2)), as an initramfs of Linux
//! does; the image goes. What is true for this machine only and not for the root covers the root's own
//! files, as with docker: its name, hosts and name servers. `/run` is new with every start: that of an image has folders
//! for its program, with their owners, and stays (a disk with a layer in memory); others are a host's, or old.
//!
//! What programs change in a root stays there, or goes to a layer over it (`fs_overlay`): in memory, or on a
//! disk of its own.

use alloc::vec::Vec;

use alloc::sync::Arc;

use mach::mem::fallible;
use sync::{Error, Result};
use vfs::mount::{self, Unmount};
use vfs::names::{self, Wanted};
use vfs::{self, FileSystem, FileType, MountFlags, Path, Walk};

use crate::init::{VolumeSource, make_directories};

/// Where the root is.
pub struct Root {
    /// The tree.
    pub source: VolumeSource,
    /// Where changes of it go.
    pub changes: Changes,
}

/// Where changes of the root go.
pub enum Changes {
    /// Where the root is.
    InPlace,
    /// Into memory; the root itself is only read.
    Memory,
    /// Onto the disk whose ext4 image has this UUID; the root itself is only read.
    Disk([u8; 16]),
}

/// Where the root is mounted first.
const NEW: &str = "/.root";
/// Where the image is seen from the root until it goes.
const OLD: &[u8] = b"/run/image";
/// What the kernel has made below the root.
const OURS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Files that tell of this machine.
const TOLD: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// Makes it the root of all programs; beside the files that tell of this machine those of the image at `covered` cover
/// the root's own.
///
/// Errors: `NoSuchDevice`, and what mounting says.
pub fn enter(root: &Root, covered: &[Vec<u8>]) -> Result<()> {
    let (system, source) = system(root)?;
    mount_at(NEW.as_bytes(), system, &source)?;
    for path in OURS {
        let to = below(path)?;
        mount::relocate(&directory(path.as_bytes())?, to)?;
    }
    if !has_new_run(root) {
        let run = alloc::format!("{NEW}/run");
        mount_at(run.as_bytes(), memory()?, b"tmpfs")?;
    }
    if !matches!(root.changes, Changes::InPlace) {
        TOLD.into_iter()
            .try_for_each(|path| make_coverable(path.as_bytes()))?;
    }
    TOLD.into_iter()
        .try_for_each(|path| cover(path.as_bytes()))?;
    for path in covered {
        make_coverable(path)?;
        cover(path)?;
    }
    let old = alloc::format!("{NEW}{}", OLD.escape_ascii());
    make_directories(old.as_bytes())?;
    mount::pivot_root(&directory(NEW.as_bytes())?, directory(old.as_bytes())?)?;
    let root = vfs::context().root();
    vfs::context().set_cwd(root);
    mount::unmount(&directory(OLD)?, Unmount::Lazily)?;
    names::rmdir(&vfs::resolve_parent(None, OLD, Walk::empty())?)
}

/// Whether `/run` is as the root was made, in each machine anew.
fn has_new_run(root: &Root) -> bool {
    matches!(
        (&root.source, &root.changes),
        (VolumeSource::Disk(_), Changes::Memory)
    )
}

fn directory(path: &[u8]) -> Result<Path> {
    vfs::resolve(None, path, Walk::FOLLOW | Walk::DIRECTORY)
}

/// The folder of that path in the root, made if it is not there.
fn below(path: &str) -> Result<Path> {
    let path = alloc::format!("{NEW}{path}");
    make_directories(path.as_bytes())?;
    directory(path.as_bytes())
}

/// The root's file system, and what it is called in /proc/mounts.
fn system(root: &Root) -> Result<(Arc<dyn FileSystem>, Vec<u8>)> {
    let is_in_place = matches!(root.changes, Changes::InPlace);
    let (tree, source) = root.source.system(!is_in_place)?;
    let upper = match root.changes {
        Changes::InPlace => return Ok((tree, source)),
        Changes::Memory => memory()?,
        Changes::Disk(uuid) => VolumeSource::Disk(uuid).system(false)?.0,
    };
    Ok((
        fs_overlay::over(tree, upper)?,
        fallible::copied(b"overlay")?,
    ))
}

fn memory() -> Result<Arc<dyn FileSystem>> {
    Ok(VolumeSource::Memory(fallible::copied(b"mode=755")?)
        .system(false)?
        .0)
}

fn mount_at(path: &[u8], system: Arc<dyn FileSystem>, source: &[u8]) -> Result<()> {
    make_directories(path)?;
    mount::mount(directory(path)?, system, source, MountFlags::RELATIME)
}

/// The path in the root.
fn in_root(path: &[u8]) -> Result<Vec<u8>> {
    let mut whole = fallible::vec(NEW.len() + path.len())?;
    whole.extend_from_slice(NEW.as_bytes());
    whole.extend_from_slice(path);
    Ok(whole)
}

/// Puts an empty file where the root has none or a link, which leads to where this machine has nothing.
fn make_coverable(path: &[u8]) -> Result<()> {
    let path = in_root(path)?;
    let slash = path.iter().rposition(|&byte| byte == b'/');
    make_directories(path.get(..slash.unwrap_or(0)).unwrap_or_default())?;
    let place = vfs::resolve_parent(None, &path, Walk::empty())?;
    match vfs::resolve(None, &path, Walk::empty()) {
        Ok(found) if found.dentry.kind() == FileType::Symlink => names::unlink(&place)?,
        Ok(_) => return Ok(()),
        Err(Error::NotFound) => {}
        Err(error) => return Err(error),
    }
    names::create(&place, &Wanted::new(FileType::Regular, 0o644)).map(drop)
}

/// Shows the image's file in place of the root's, if both have one.
fn cover(path: &[u8]) -> Result<()> {
    let find = |path: &[u8]| vfs::resolve(None, path, Walk::empty());
    let (from, to) = match (find(path), find(&in_root(path)?)) {
        (Ok(from), Ok(to)) => (from, to),
        _ => return Ok(()),
    };
    match mount::bind(&from, to, false) {
        // A link, or something else that is no file: the root knows better.
        Err(Error::NotDirectory | Error::Invalid) => Ok(()),
        bound => bound,
    }
}
