//! The disks that sequences begin with.
//!
//! - Whatever is free holds bytes that no file ever had at any place: who sees them has seen a
//!   block before it was written.
//! - The first file has six extents in a block of their own, of which the log holds a copy that was
//!   not brought to its place: who frees the block and forgets to revoke it gets it back.
//! - One disk is roomy, the other has only a few blocks left, so that what is freed is used again at once.

use std::process::Command;

use ext4::{Access, FileType, New, ROOT_INODE, Time, Volume};

use super::model::Files;
use super::operation::{FOLDERS, pattern};
use crate::drive::Drive;
use crate::medium::Medium;

/// The time of all changes.
pub const NOW: Time = Time {
    seconds: 1_800_000_000,
    nanos: 0,
};
/// What is in free blocks.
const STALE: u8 = 0xff;
const BLOCK: usize = 1024;
/// Blocks that the tight disk has left.
const LEFT: u64 = 9;

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Megabytes.
    Much,
    /// A few blocks.
    Little,
}

/// A disk with the first file on it.
#[derive(Clone)]
pub struct Scene {
    /// Unmounted.
    medium: Medium,
    /// Its files.
    pub files: Files,
}

/// A file or a directory to be made.
pub fn new(kind: FileType) -> New<'static> {
    New {
        kind,
        mode: 0o755,
        uid: 0,
        gid: 0,
        device: (0, 0),
        target: b"",
    }
}

fn failed(what: &str) -> impl Fn(ext4::Error) -> String {
    move |error| format!("{what}: {error:?}")
}

impl Scene {
    /// Makes one with `mke2fs`.
    pub fn new(room: Room) -> Result<Self, String> {
        let medium = mke2fs(
            &[
                "-b",
                "1024",
                "-N",
                "64",
                "-J",
                "size=1",
                "-O",
                "^resize_inode",
            ],
            "4M",
        )?;
        let drive = Drive::new(medium);
        let mut volume = mount(&drive)?;
        let files = fill(&mut volume, room).map_err(failed("the scene"))?;
        volume.unmount().map_err(failed("an unmount"))?;
        Ok(Self {
            medium: drive.medium().settle(),
            files,
        })
    }

    /// The disk, unmounted.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// Mounts it and puts into the log what waits for its place. Nothing of that is in the history.
    pub fn begin(&self) -> Result<(Drive, Volume), String> {
        let drive = Drive::new(self.medium.clone());
        let mut volume = mount(&drive)?;
        let prepared = prepare(&mut volume).map_err(failed("a first commit"));
        drive.take_history();
        prepared.map(|()| (drive, volume))
    }
}

/// Mounts a disk for writing.
pub fn mount(drive: &Drive) -> Result<Volume, String> {
    let mounted = Volume::mount(Box::new(drive.clone()), Access::ReadWrite);
    let (volume, found) = mounted.map_err(|error| format!("a mount: {error:?}"))?;
    match found.has_errors {
        true => Err("the image says that it has errors".into()),
        false => Ok(volume),
    }
}

/// An image of `mke2fs -t ext4` with these arguments and this size.
pub fn mke2fs(arguments: &[&str], size: &str) -> Result<Medium, String> {
    let path = crate::temporary("scene");
    let output = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-E"])
        .arg("lazy_itable_init=0,hash_seed=6b8b4567-327b-23c6-643c-986966334873")
        .args(arguments)
        .arg(&path)
        .arg(size)
        .output()
        .map_err(|error| format!("mke2fs: {error}"))?;
    let bytes = std::fs::read(&path).map_err(|error| format!("mke2fs: {error}"));
    let _ = std::fs::remove_file(&path);
    match output.status.success() {
        true => bytes.map(Medium::new),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn fill(volume: &mut Volume, room: Room) -> ext4::Result<Files> {
    let filler = volume.create(ROOT_INODE, b"filler", &new(FileType::Regular), NOW)?;
    let stale = vec![STALE; 64 * BLOCK];
    let mut at = 0;
    while let Ok(count) = volume.write(filler, at, &stale, NOW) {
        at += count as u64;
    }
    let gone = volume.unlink(ROOT_INODE, b"filler", NOW)?;
    volume.evict(gone.inode, NOW)?;
    volume.checkpoint()?;
    for folder in FOLDERS {
        volume.create(
            ROOT_INODE,
            folder.as_bytes(),
            &new(FileType::Directory),
            NOW,
        )?;
    }
    let files = first_file(volume)?;
    if room == Room::Little {
        volume.checkpoint()?;
        let filler = volume.create(ROOT_INODE, b"filler", &new(FileType::Regular), NOW)?;
        let mut at = 0;
        while volume.usage().free_blocks > LEFT + 1 {
            let blocks = (volume.usage().free_blocks - LEFT - 1).min(64);
            at += volume.write(filler, at, &stale[..blocks as usize * BLOCK], NOW)? as u64;
        }
    }
    Ok(files)
}

/// Five blocks with holes between them.
fn first_file(volume: &mut Volume) -> ext4::Result<Files> {
    let folder = volume.lookup(ROOT_INODE, b"d1")?;
    let file = volume.create(folder, b"a", &new(FileType::Regular), NOW)?;
    let mut bytes = vec![0; 11 * BLOCK];
    for block in (0..=8).step_by(2) {
        let at = block * BLOCK;
        let data = pattern(0, at, BLOCK);
        volume.write(file, at as u64, &data, NOW)?;
        bytes[at..at + BLOCK].copy_from_slice(&data);
    }
    // The sixth comes when the disk is mounted again.
    let data = pattern(0, 10 * BLOCK, BLOCK);
    bytes[10 * BLOCK..].copy_from_slice(&data);
    Ok(Files::with_first(bytes))
}

fn prepare(volume: &mut Volume) -> ext4::Result<()> {
    let folder = volume.lookup(ROOT_INODE, b"d1")?;
    let file = volume.lookup(folder, b"a")?;
    let at = 10 * BLOCK;
    volume.write(file, at as u64, &pattern(0, at, BLOCK), NOW)?;
    volume.commit()
}
