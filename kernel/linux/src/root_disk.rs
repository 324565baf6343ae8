//! The root of programs on a disk: what they change there stays.
//!
//! The machine begins on the image that the host packed. Here the disk is mounted, takes over the file systems
//! that the kernel made below the root, and changes places with it (pivot_root(2)), as an initramfs of Linux
//! does; the image goes. What is true for this machine only and not for the disk covers the disk's own
//! files, as with docker: its name, hosts and name servers. `/run` is new with every start.

use alloc::vec::Vec;

use fs_ext4::node_of;
use sync::{Error, Result};
use vfs::mount::{self, Unmount, kinds};
use vfs::{self, MountFlags, Path, Walk, names};

use crate::init::make_directories;

/// Where the disk is mounted first.
const NEW: &str = "/.root";
/// Where the image is seen from the disk until it goes.
const OLD: &[u8] = b"/run/image";
/// What the kernel has made below the root.
const OURS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Files that tell of this machine.
const TOLD: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// Makes the disk whose ext4 image has this UUID the root.
///
/// Errors: `NoSuchDevice`, and what mounting says.
pub fn enter(uuid: &[u8; 16]) -> Result<()> {
    mount_at(NEW.as_bytes(), "ext4", node_of(uuid)?.as_bytes())?;
    for path in OURS {
        let to = below(path)?;
        mount::relocate(&directory(path.as_bytes())?, to)?;
    }
    let run = alloc::format!("{NEW}/run");
    mount_at(run.as_bytes(), "tmpfs", b"tmpfs")?;
    TOLD.into_iter().try_for_each(cover)?;
    let old = alloc::format!("{NEW}{}", OLD.escape_ascii());
    make_directories(old.as_bytes())?;
    mount::pivot_root(&directory(NEW.as_bytes())?, directory(old.as_bytes())?)?;
    let root = vfs::context().root();
    vfs::context().set_cwd(root);
    mount::unmount(&directory(OLD)?, Unmount::Lazily)?;
    names::rmdir(&vfs::resolve_parent(None, OLD, Walk::empty())?)
}

fn directory(path: &[u8]) -> Result<Path> {
    vfs::resolve(None, path, Walk::FOLLOW | Walk::DIRECTORY)
}

/// The folder of that path on the disk, made if it is not there.
fn below(path: &str) -> Result<Path> {
    let path = alloc::format!("{NEW}{path}");
    make_directories(path.as_bytes())?;
    directory(path.as_bytes())
}

fn mount_at(path: &[u8], kind: &str, source: &[u8]) -> Result<()> {
    make_directories(path)?;
    let system = kinds::make(kind.as_bytes(), source, b"")?;
    mount::mount(directory(path)?, system, source, MountFlags::RELATIME)
}

/// Shows the image's file in place of the disk's, if both have one.
fn cover(path: &str) -> Result<()> {
    let on_disk = alloc::format!("{NEW}{path}");
    let find = |path: &[u8]| vfs::resolve(None, path, Walk::empty());
    let (from, to) = match (find(path.as_bytes()), find(on_disk.as_bytes())) {
        (Ok(from), Ok(to)) => (from, to),
        _ => return Ok(()),
    };
    match mount::bind(&from, to, false) {
        // A link, or something else that is no file: the disk knows better.
        Err(Error::NotDirectory | Error::Invalid) => Ok(()),
        bound => bound,
    }
}

/// The path of the program `name`: searched in the folders that `environment` names, if it has no slash.
pub fn program(name: &[u8], environment: &[Vec<u8>]) -> Vec<u8> {
    let path = environment
        .iter()
        .find_map(|word| word.strip_prefix(b"PATH="));
    let folders = path.unwrap_or(b"/bin").split(|&byte| byte == b':');
    let candidates = folders.map(|folder| [folder, b"/", name].concat());
    let is_there = |path: &Vec<u8>| vfs::resolve(None, path, Walk::FOLLOW).is_ok();
    match name.contains(&b'/') {
        true => name.to_vec(),
        false => candidates
            .into_iter()
            .find(is_there)
            .unwrap_or_else(|| name.to_vec()),
    }
}
