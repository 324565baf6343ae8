//! Names and numbers of disks, and their nodes in /dev.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use fs_tmp::devtmpfs;
use mach::klog;
use mach::sync::Spin;
use vfs::names::{create_by_kernel, unlink_by_kernel};
use vfs::{FileType, New, device_number};

/// The major number of virtio's disks on Debian; Linux gives it out as it goes.
pub const MAJOR: u32 = 254;
/// Minor numbers of a disk: its own, and fifteen for partitions.
pub const MINORS: u32 = 16;

const MODE: u32 = 0o660;
/// Debian's group `disk`.
const GROUP_DISK: u32 = 6;

/// Names, each made once: a table that is read again has most of the old ones.
static NAMES: Spin<Vec<&'static str>> = Spin::new(Vec::new());

/// The name of a disk by its place.
pub(crate) fn disk_name(number: usize) -> &'static str {
    let letter = char::from(b'a' + (number % 26) as u8);
    known(format!("vd{letter}"))
}

/// The name of its partition.
pub(crate) fn partition_name(disk: &str, number: u8) -> &'static str {
    known(format!("{disk}{number}"))
}

fn known(name: String) -> &'static str {
    let mut names = NAMES.lock();
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    let name = String::leak(name);
    names.push(name);
    name
}

/// The minor number of a disk's partition; 0 is the disk itself.
pub(crate) fn minor(disk: usize, partition: u8) -> u32 {
    disk as u32 * MINORS + u32::from(partition)
}

/// Makes a node.
pub(crate) fn add(name: &str, minor: u32) {
    let new = New {
        kind: FileType::BlockDevice,
        mode: MODE,
        uid: 0,
        gid: GROUP_DISK,
        device: device_number(MAJOR, minor),
        target: &[],
    };
    let made = devtmpfs::place_of(name).and_then(|place| create_by_kernel(&place, &new));
    if let Err(error) = made {
        klog!("disk {name} has no node: {error:?}");
    }
}

/// Takes it away.
pub(crate) fn remove(name: &str) {
    // A program may have removed it already.
    let _ = devtmpfs::place_of(name).and_then(|place| unlink_by_kernel(&place));
}
