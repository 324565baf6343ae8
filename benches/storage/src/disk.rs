//! The image behind the guest's disk.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use bench_pair::OUTPUT;

/// Room for what is read and written, several times over.
const BYTES: u64 = 256 << 20;

/// Where the host keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// In memory, where a flush costs nothing: what is seen is the guest's part.
    Memory,
    /// In a file of the host's disk, through its cache; a flush waits for the disk.
    File,
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

    /// What both systems call the first disk behind it.
    pub fn device(self) -> &'static str {
        match self {
            Self::Virtio => "vda",
            Self::Nvme => "nvme0n1",
        }
    }
}

/// A raw image, removed when it is dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// An image with a byte in each block, so that no read finds a hole; with ext4 or without.
    pub fn new(host: Host, has_ext4: bool) -> Result<Self, String> {
        let folder = match host {
            Host::Memory => PathBuf::from("/dev/shm"),
            Host::File => PathBuf::from(OUTPUT),
        };
        let kind = if has_ext4 { "ext4" } else { "raw" };
        let name = format!("bench-storage-{}-{kind}.img", std::process::id());
        let path = folder.join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut file = File::create(&path).map_err(failed)?;
        let disk = Self(path.clone());
        std::io::copy(
            &mut std::io::Read::take(std::io::repeat(0x5a), BYTES),
            &mut file,
        )
        .map_err(failed)?;
        match has_ext4 {
            true => disk.format().map(|()| disk),
            false => Ok(disk),
        }
    }

    fn format(&self) -> Result<(), String> {
        // Linux would go on with what mke2fs left for later while it is measured.
        let made = Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-b", "4096"])
            .args(["-E", "lazy_itable_init=0,lazy_journal_init=0"])
            .arg(&self.0)
            .status();
        match made.is_ok_and(|status| status.success()) {
            true => Ok(()),
            false => Err("mke2fs fails: `make setup` installs it.".into()),
        }
    }

    /// For `--disk`.
    pub fn flag(&self, bus: Bus) -> String {
        let more = match bus {
            Bus::Virtio => "",
            Bus::Nvme => ",bus=nvme",
        };
        format!("{}{more}", self.0.display())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It lies in a folder for what may be removed.
        let _ = fs::remove_file(&self.0);
    }
}
