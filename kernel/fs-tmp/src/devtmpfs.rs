//! /dev: a file system in memory with a node for each device that is registered.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::sync::Once;
use sync::{Error, Result};

use crate::{Tmpfs, options};
use vfs::devices;
use vfs::devices::Device;
use vfs::{
    FileSystem, FileType, InodeRef, LastComponent, MountFlags, New, Path, Walk, device_number,
    mount, resolve_parent,
};

/// There is one /dev, however often it is mounted.
static TREE: Once<Arc<Tmpfs>> = Once::new();

/// Bytes that programs may keep in it, most of them in /dev/shm.
const SHARE_OF_MEMORY: u64 = 2;

/// Links that programs expect (devtmpfs and udev make them).
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Directories in it: name and mode.
const DIRECTORIES: [(&str, u32); 2] = [("shm", 0o1777), ("pts", 0o755)];

/// The file system; made at the first call, with all devices registered so far.
pub fn tree() -> Arc<Tmpfs> {
    TREE.call_once(|| {
        let bytes = options::memory_bytes() / SHARE_OF_MEMORY;
        let tree = Tmpfs::of_kind("devtmpfs", bytes, 0o755);
        for (name, target) in LINKS {
            let new = New {
                target: target.as_bytes(),
                ..plain(FileType::Symlink, 0o777)
            };
            make(&tree, name, &new);
        }
        for (name, mode) in DIRECTORIES {
            make(&tree, name, &plain(FileType::Directory, mode));
        }
        let nodes: Vec<Device> = devices::nodes();
        nodes.iter().for_each(|device| make_node(&tree, device));
        tree
    })
    .clone()
}

/// Its top as the kernel sees it, wherever programs have it mounted.
static HOME: Once<Path> = Once::new();

/// Mounts it for the kernel; once at boot.
pub(crate) fn keep() -> Result<()> {
    let mount = mount::new_detached(tree(), b"devtmpfs", MountFlags::empty(), false)?;
    HOME.call_once(|| Path::top_of(&mount));
    Ok(())
}

/// Where the kernel adds and removes nodes.
pub fn top() -> Option<&'static Path> {
    HOME.get()
}

/// Adds the node of a device that was registered later.
pub fn add_node(device: &Device) {
    if let Some(tree) = TREE.get().filter(|_| !device.name.is_empty()) {
        make_node(tree, device);
    }
}

/// Where the node of the name stands, whatever is mounted on /dev.
pub fn place_of(name: &str) -> Result<LastComponent> {
    resolve_parent(top(), name.as_bytes(), Walk::empty())
}

fn make_node(tree: &Tmpfs, device: &Device) {
    let new = New {
        device: device_number(device.major, device.minors.0),
        ..plain(FileType::CharDevice, device.mode)
    };
    match device.name.split_once('/') {
        None => make(tree, device.name, &new),
        Some((directory, name)) => make_below(tree, directory, name, &new),
    }
}

/// Makes a node in a directory, which is made with the first.
fn make_below(tree: &Tmpfs, directory: &str, name: &str, new: &New<'_>) {
    let top = tree.root();
    if top.lookup(directory.as_bytes()).is_err() {
        make(tree, directory, &plain(FileType::Directory, 0o755));
    }
    if let Ok(directory) = top.lookup(directory.as_bytes()) {
        make_in(&directory, name, new);
    }
}

fn plain(kind: FileType, mode: u32) -> New<'static> {
    New {
        kind,
        mode,
        uid: 0,
        gid: 0,
        device: 0,
        target: &[],
    }
}

fn make(tree: &Tmpfs, name: &str, new: &New<'_>) {
    make_in(&tree.root(), name, new);
}

fn make_in(directory: &InodeRef, name: &str, new: &New<'_>) {
    let made = match directory.lookup(name.as_bytes()) {
        Ok(_) => Err(Error::Exists),
        Err(_) => directory.create(name.as_bytes(), new),
    };
    if let Err(error) = made {
        mach::klog!("dev node={name} error={error:?}");
    }
}

/// devtmpfs for mount(2).
pub fn make_system(_source: &[u8], _options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    Ok(tree())
}
