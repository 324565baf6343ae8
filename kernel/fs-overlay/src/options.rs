//! mount(2): `mount -t overlay overlay -o lowerdir=/a:/b,upperdir=/c,workdir=/d /merged`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible::TryPush;
use sync::{Error, Result};
use vfs::kinds::{self, Kind};
use vfs::{FileSystem, FileType, Path, Walk};

use crate::cursor::LOWERS_MAX;
use crate::overlay::{self, Layer, Upper, new, plain};

/// The options that Linux's overlay knows; all but the first three change nothing here.
const OPTIONS: &[&str] = &[
    "lowerdir",
    "upperdir",
    "workdir",
    "index",
    "metacopy",
    "redirect_dir",
    "uuid",
    "volatile",
    "xino",
];

/// Makes the kind known to mount(2). Once, at boot.
pub fn init() {
    kinds::register(Kind {
        name: "overlay",
        nodev: true,
        options: OPTIONS,
        make,
    });
}

fn make(_source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let mut lowers = Vec::new();
    let names = value(options, b"lowerdir=").ok_or(Error::Invalid)?;
    for name in names.split(|byte| *byte == b':') {
        lowers.try_push(layer(&directory(name)?))?;
    }
    if lowers.len() > LOWERS_MAX {
        return Err(Error::Invalid);
    }
    let upper = match value(options, b"upperdir=") {
        None => None,
        Some(name) => {
            let work = value(options, b"workdir=").ok_or(Error::Invalid)?;
            Some(upper(&directory(name)?, &directory(work)?)?)
        }
    };
    new(lowers, upper)
}

fn value<'a>(options: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    options
        .split(|byte| *byte == b',')
        .find_map(|option| option.strip_prefix(name))
}

fn directory(name: &[u8]) -> Result<Path> {
    vfs::resolve(None, name, Walk::FOLLOW | Walk::DIRECTORY)
}

fn layer(at: &Path) -> Layer {
    Layer {
        top: at.inode().clone(),
        system: at.mount.block.system.clone(),
        mount: Some(at.mount.clone()),
    }
}

/// Things are made in `work/work`, as with Linux, so that nothing else is cleared away.
///
/// Errors: `Invalid` if the two are not beside each other in one mount of a system that takes changes.
fn upper(top: &Path, work: &Path) -> Result<Upper> {
    let is_beside = Arc::ptr_eq(&top.mount, &work.mount)
        && !top.dentry.is_above(&work.dentry)
        && !work.dentry.is_above(&top.dentry)
        && layer(top).takes_changes();
    if !is_beside {
        return Err(Error::Invalid);
    }
    top.mount.check_writable()?;
    let made = overlay::directory(work.inode(), b"work", &plain(FileType::Directory, 0))?;
    Ok(Upper {
        layer: layer(top),
        work: made,
    })
}
