//! The images behind the guest's disks.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bench_pair::OUTPUT;

/// Room for what is read and written, several times over.
const BYTES: u64 = 256 << 20;
/// A log's first blocks, and more.
const BLANK_BYTES: usize = 64 << 10;

/// What the host does with the guest's writes and flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The image is a file of the host's disk; a flush waits for that.
    Writeback,
    /// It lies in the host's memory and flushes are passed over: what is seen is the guest's part.
    Unsafe,
}

impl Cache {
    /// In the order of the page.
    pub const ALL: [Self; 2] = [Self::Unsafe, Self::Writeback];

    /// QEMU's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Writeback => "writeback",
            Self::Unsafe => "unsafe",
        }
    }
}

/// How the machine reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    Virtio,
    Nvme,
}

impl Bus {
    /// In the order of the page.
    pub const ALL: [Self; 2] = [Self::Virtio, Self::Nvme];

    /// What the page calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Virtio => "virtio-blk",
            Self::Nvme => "NVMe",
        }
    }

    /// What the third disk behind it is called.
    pub fn third_disk(self) -> &'static str {
        match self {
            Self::Virtio => "vdc",
            Self::Nvme => "nvme0n3",
        }
    }

    /// What the two disks behind it are called, by their numbers.
    pub fn disks(self) -> [&'static str; 2] {
        match self {
            Self::Virtio => ["vda", "vdb"],
            Self::Nvme => ["nvme0n1", "nvme0n2"],
        }
    }
}

/// A raw image, removed when it is dropped.
pub struct Disk {
    path: PathBuf,
    cache: Cache,
}

impl Disk {
    /// An image with a byte in each block, so that no read finds a hole; with ext4, which has what is in
    /// `folder`, or without.
    pub fn new(cache: Cache, ext4: Option<&Path>) -> Result<Self, String> {
        let folder = match cache {
            Cache::Unsafe => PathBuf::from("/dev/shm"),
            Cache::Writeback => PathBuf::from(OUTPUT),
        };
        let kind = if ext4.is_some() { "ext4" } else { "raw" };
        static DISKS: AtomicU32 = AtomicU32::new(0);
        let number = DISKS.fetch_add(1, Relaxed);
        let name = format!("bench-storage-{}-{number}-{kind}.img", std::process::id());
        let path = folder.join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut file = File::create(&path).map_err(failed)?;
        let disk = Self {
            path: path.clone(),
            cache,
        };
        let mut bytes = std::io::repeat(0x5a).take(BYTES);
        std::io::copy(&mut bytes, &mut file).map_err(failed)?;
        if let Some(folder) = ext4 {
            disk.format(folder)?;
        }
        // What was written here is not to be on its way while the guest's flushes are measured.
        file.sync_all().map_err(failed)?;
        Ok(disk)
    }

    /// Makes it begin with zeroes, as a new log does. No machine uses it.
    pub fn blank(&self) -> Result<(), String> {
        let file = File::options().write(true).open(&self.path);
        let blanked = file.and_then(|file| file.write_all_at(&[0; BLANK_BYTES], 0));
        blanked.map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn format(&self, folder: &Path) -> Result<(), String> {
        // Linux would go on with what mke2fs left for later while it is measured.
        let made = Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-b", "4096"])
            .args(["-E", "lazy_itable_init=0,lazy_journal_init=0"])
            .args([Path::new("-d"), folder, &self.path])
            .status();
        match made.is_ok_and(|status| status.success()) {
            true => Ok(()),
            false => Err("mke2fs fails: `make setup` installs it.".into()),
        }
    }

    /// For `--disk`.
    pub fn flag(&self, bus: Bus) -> String {
        let bus = match bus {
            Bus::Virtio => "virtio",
            Bus::Nvme => "nvme",
        };
        let cache = self.cache.name();
        format!("{},bus={bus},cache={cache}", self.path.display())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It lies in a folder for what may be removed.
        let _ = fs::remove_file(&self.path);
    }
}
