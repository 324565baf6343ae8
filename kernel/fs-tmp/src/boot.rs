//! The tree as the first program finds it.

use mm::reclaim;
use sync::{Error, Result};

use crate::unpack::{UnpackError, unpack};
use crate::{Tmpfs, devtmpfs, options};
use vfs::devices;
use vfs::kinds::{self, Kind};
use vfs::{FileSystem, FileType, MountFlags, New, Path, mount};

/// Directories that exist in any case: name and mode.
const DIRECTORIES: [(&str, u32); 6] = [
    ("dev", 0o755),
    ("proc", 0o555),
    ("sys", 0o555),
    ("run", 0o755),
    ("tmp", 0o1777),
    ("root", 0o700),
];

/// Mounts the root, filled from the boot image's `archives` one after the other, and what every program expects
/// below it. Once, after the devices and the other crates' kinds are registered and before any
/// program.
pub fn mount_all(archives: &[&'static [u8]]) -> core::result::Result<(), UnpackError> {
    reclaim::register_cache(mount::shrink);
    for kind in [
        Kind {
            name: "tmpfs",
            nodev: true,
            options: options::NAMES,
            make: options::make,
        },
        Kind {
            name: "devtmpfs",
            nodev: true,
            options: options::NAMES,
            make: devtmpfs::make_system,
        },
    ] {
        kinds::register(kind);
    }
    devices::make_nodes_by(devtmpfs::add_node);
    let root = Tmpfs::new(options::memory_bytes() / 4 * 3, 0o755);
    for archive in archives {
        unpack(archive, &root)?;
    }
    mount::mount_root(root).map_err(UnpackError::Member)?;
    fill().map_err(UnpackError::Member)
}

fn fill() -> Result<()> {
    devtmpfs::keep()?;
    let top = mount::root();
    for (name, mode) in DIRECTORIES {
        match top.inode().lookup(name.as_bytes()) {
            Ok(_) => {}
            Err(Error::NotFound) => {
                let kind = FileType::Directory;
                let new = New {
                    kind,
                    mode,
                    uid: 0,
                    gid: 0,
                    device: 0,
                    target: &[],
                };
                top.inode().create(name.as_bytes(), &new)?;
            }
            Err(error) => return Err(error),
        }
    }
    cover(&top, "dev", "devtmpfs", MountFlags::empty())?;
    cover(&top, "proc", "proc", MountFlags::NOSUID | MountFlags::NODEV)?;
    cover(&top, "sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV)
}

/// Mounts a fresh file system of `kind` on the directory `name` of the root.
fn cover(top: &Path, name: &str, kind: &str, flags: MountFlags) -> Result<()> {
    let dentry = top.dentry.child(name.as_bytes())?.ok_or(Error::NotFound)?;
    let at = Path {
        mount: top.mount.clone(),
        dentry,
    };
    let system: alloc::sync::Arc<dyn FileSystem> = kinds::make(kind.as_bytes(), b"", b"")?;
    mount::mount(at, system, kind.as_bytes(), flags | MountFlags::RELATIME)
}
