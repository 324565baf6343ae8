//! Images made and judged by e2fsprogs, and disks in memory that hold them.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ext4::{
    Access, Device, DeviceError, Durability, FileType, Found, MountError, New, Time, Volume,
};

/// The time of all changes.
pub const NOW: Time = Time {
    seconds: 1_800_000_000,
    nanos: 123_456_789,
};

/// A disk in memory.
#[derive(Clone)]
pub struct Disk(pub Arc<Mutex<State>>);

/// A write, or a flush.
pub type Event = Option<(u64, Vec<u8>, Durability)>;

/// What is on it, and what happened to it.
pub struct State {
    pub bytes: Vec<u8>,
    pub is_read_only: bool,
    /// Writes and flushes since somebody began to watch.
    pub history: Option<Vec<Event>>,
    pub reads: u64,
    /// Writes after which all others fail.
    pub writes_left: Option<u64>,
}

impl Disk {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State {
            bytes,
            is_read_only: false,
            history: None,
            reads: 0,
            writes_left: None,
        })))
    }

    /// The same bytes on a disk of their own.
    pub fn copy(&self) -> Self {
        Self::new(self.bytes())
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().bytes.clone()
    }

    pub fn mount(&self, access: Access) -> Result<(Volume, Found), MountError> {
        Volume::mount(Box::new(self.clone()), access)
    }

    /// Mounts for writing.
    pub fn open(&self) -> Volume {
        self.mount(Access::ReadWrite).expect("the image mounts").0
    }

    /// Asserts that e2fsck has nothing to say.
    pub fn assert_clean(&self, what: &str) {
        let (is_clean, report) = self.fsck();
        assert!(is_clean, "e2fsck after {what}:\n{report}");
    }

    /// The same of the disk as it would be after a clean end.
    pub fn copy_clean(&self, what: &str) {
        let copy = self.copy();
        copy.open().unmount().expect("an unmount");
        copy.assert_clean(what);
    }

    pub fn fsck(&self) -> (bool, String) {
        let path = temporary("fsck");
        fs::write(&path, &self.0.lock().unwrap().bytes).expect("a temporary file");
        let output = Command::new("e2fsck")
            .arg("-fn")
            .arg(&path)
            .output()
            .expect("e2fsck");
        let _ = fs::remove_file(&path);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success() && !text.contains("IGNORED"), text)
    }

    /// What debugfs answers.
    pub fn debugfs(&self, request: &str) -> String {
        let path = temporary("debugfs");
        fs::write(&path, &self.0.lock().unwrap().bytes).expect("a temporary file");
        let output = Command::new("debugfs")
            .args(["-w", "-R", request])
            .arg(&path)
            .output()
            .expect("debugfs");
        self.0.lock().unwrap().bytes = fs::read(&path).expect("the image");
        let _ = fs::remove_file(&path);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Device for Disk {
    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().bytes.len() as u64
    }

    fn is_read_only(&self) -> bool {
        self.0.lock().unwrap().is_read_only
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        assert!(
            offset.is_multiple_of(512) && into.len().is_multiple_of(512),
            "whole sectors"
        );
        let mut state = self.0.lock().unwrap();
        state.reads += 1;
        let end = offset as usize + into.len();
        into.copy_from_slice(state.bytes.get(offset as usize..end).ok_or(DeviceError)?);
        Ok(())
    }

    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        durability: Durability,
    ) -> Result<(), DeviceError> {
        assert!(
            offset.is_multiple_of(512) && from.len().is_multiple_of(512),
            "whole sectors"
        );
        let mut state = self.0.lock().unwrap();
        assert!(
            !state.is_read_only,
            "a write to a disk that cannot be written"
        );
        if let Some(left) = &mut state.writes_left {
            *left = left.checked_sub(1).ok_or(DeviceError)?;
        }
        let end = offset as usize + from.len();
        state
            .bytes
            .get_mut(offset as usize..end)
            .ok_or(DeviceError)?
            .copy_from_slice(from);
        if let Some(history) = &mut state.history {
            history.push(Some((offset, from.to_vec(), durability)));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if let Some(history) = &mut self.0.lock().unwrap().history {
            history.push(None);
        }
        Ok(())
    }
}

/// The disk as a loss of power after `count` events may leave it: of what was not flushed, each
/// sector is there or not.
pub fn after_loss(
    before: &[u8],
    history: &[Event],
    count: usize,
    random: &mut models::Random,
) -> Disk {
    let mut bytes = before.to_vec();
    let flushed = history[..count]
        .iter()
        .rposition(Option::is_none)
        .unwrap_or(0);
    for (index, event) in history[..count].iter().enumerate() {
        let Some((offset, data, durability)) = event else {
            continue;
        };
        for (sector, part) in data.chunks(512).enumerate() {
            let survives = index < flushed || *durability == Durability::Forced;
            if survives || random.once_in(2) {
                let at = *offset as usize + sector * 512;
                bytes[at..at + 512].copy_from_slice(part);
            }
        }
    }
    Disk::new(bytes)
}

/// A path in the temporary folder that nobody else has.
pub fn temporary(what: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("ext4-{}-{what}-{number}", std::process::id()))
}

/// An image made by `mke2fs -t ext4` with these arguments and this size.
pub fn image(arguments: &[&str], size: &str) -> Disk {
    image_of(None, arguments, size)
}

/// The same with the files of a folder.
pub fn image_of(folder: Option<&PathBuf>, arguments: &[&str], size: &str) -> Disk {
    let path = temporary("image");
    let mut command = Command::new("mke2fs");
    command.args([
        "-q",
        "-F",
        "-t",
        "ext4",
        "-E",
        "lazy_itable_init=0,hash_seed=6b8b4567-327b-23c6-643c-986966334873",
    ]);
    if let Some(folder) = folder {
        command.arg("-d").arg(folder);
    }
    let status = command
        .args(arguments)
        .arg(&path)
        .arg(size)
        .status()
        .expect("mke2fs");
    assert!(status.success(), "mke2fs {arguments:?}");
    let bytes = fs::read(&path).expect("the image");
    let _ = fs::remove_file(&path);
    Disk::new(bytes)
}

/// A regular file to be made.
pub fn regular() -> New<'static> {
    New {
        kind: FileType::Regular,
        mode: 0o644,
        uid: 1000,
        gid: 100,
        device: (0, 0),
        target: b"",
    }
}

/// A directory to be made.
pub fn folder() -> New<'static> {
    New {
        kind: FileType::Directory,
        mode: 0o755,
        ..regular()
    }
}

/// A symbolic link to be made.
pub fn link_to(target: &[u8]) -> New<'_> {
    New {
        kind: FileType::Symlink,
        mode: 0o777,
        target,
        uid: 0,
        gid: 0,
        device: (0, 0),
    }
}

/// The inode at a path.
pub fn at(volume: &mut Volume, path: &str) -> u32 {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.fold(ext4::ROOT_INODE, |dir, name| {
        volume.lookup(dir, name.as_bytes()).expect(name)
    })
}

/// All bytes of a file.
pub fn contents(volume: &mut Volume, number: u32) -> Vec<u8> {
    let size = volume.inode(number).expect("an inode").size;
    let mut bytes = vec![0xee; size as usize];
    assert_eq!(volume.read(number, 0, &mut bytes), Ok(size as usize));
    bytes
}

/// All names of a directory, a few at a time.
pub fn names(volume: &mut Volume, dir: u32) -> Vec<Vec<u8>> {
    let (mut all, mut cursor) = (Vec::new(), 0);
    loop {
        let before = all.len();
        volume
            .list(dir, cursor, &mut |listed| {
                if all.len() - before >= 7 {
                    return false;
                }
                all.push(listed.name.to_vec());
                cursor = listed.next;
                true
            })
            .expect("a listing");
        if all.len() == before {
            return all;
        }
    }
}
