//! Names and numbers of disks, and their nodes in /dev.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use fs_tmp::devtmpfs;
use mach::klog;
use mach::sync::Spin;
use vfs::names::{create_by_kernel, unlink_by_kernel};
use vfs::{FileType, New, device_number};

/// Minor numbers of a disk: its own, and fifteen for partitions.
pub const MINORS: u32 = 16;

/// What drives a disk, which names and numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// `vda`, `vdb`.
    Virtio,
    /// `nvme0n1`: the controller from 0 on, the namespace as it says.
    Nvme {
        /// The controller's place among its kind.
        controller: usize,
        /// The namespace's number.
        namespace: u32,
    },
}

impl Family {
    /// The major number on Debian; Linux gives virtio's out as it goes.
    pub const fn major(self) -> u32 {
        match self {
            Self::Virtio => 254,
            Self::Nvme { .. } => 259,
        }
    }

    /// What /proc/devices calls it.
    pub const fn driver(self) -> &'static str {
        match self {
            Self::Virtio => "virtblk",
            Self::Nvme { .. } => "blkext",
        }
    }

    /// The name of its disk number `place`.
    fn disk_name(self, place: usize) -> &'static str {
        match self {
            Self::Virtio => {
                let letter = char::from(b'a' + (place % 26) as u8);
                known(format!("vd{letter}"))
            }
            Self::Nvme {
                controller,
                namespace,
            } => known(format!("nvme{controller}n{namespace}")),
        }
    }
}

/// The name and the numbers of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub name: &'static str,
    pub family: Family,
    /// The minor number of the disk itself.
    first_minor: u32,
}

impl Identity {
    /// Of a family's disk, before which there are `place` others with its major number.
    pub(crate) fn new(family: Family, place: usize) -> Self {
        Self {
            name: family.disk_name(place),
            family,
            first_minor: place as u32 * MINORS,
        }
    }

    /// Major and minor number of a partition; 0 is the disk itself.
    pub(crate) fn number(&self, partition: u8) -> (u32, u32) {
        let minor = self.first_minor + u32::from(partition);
        (self.family.major(), minor)
    }

    /// The partition that has these numbers, 0 for the disk itself; `None` if they are another disk's.
    pub(crate) fn partition_of(&self, (major, minor): (u32, u32)) -> Option<u8> {
        let is_ours = major == self.family.major();
        let partition = minor.checked_sub(self.first_minor);
        partition
            .filter(|partition| is_ours && *partition < MINORS)
            .map(|partition| partition as u8)
    }
}

const MODE: u32 = 0o660;
/// Debian's group `disk`.
const GROUP_DISK: u32 = 6;

/// Names, each made once: a table that is read again has most of the old ones.
static NAMES: Spin<Vec<&'static str>> = Spin::new(Vec::new());

/// The name of a disk's partition: a letter parts it from a disk's that ends with a digit.
pub(crate) fn partition_name(disk: &str, number: u8) -> &'static str {
    match disk.ends_with(|last: char| last.is_ascii_digit()) {
        true => known(format!("{disk}p{number}")),
        false => known(format!("{disk}{number}")),
    }
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

/// Makes a node with this major and minor number.
pub(crate) fn add(name: &str, (major, minor): (u32, u32)) {
    let new = New {
        kind: FileType::BlockDevice,
        mode: MODE,
        uid: 0,
        gid: GROUP_DISK,
        device: device_number(major, minor),
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
