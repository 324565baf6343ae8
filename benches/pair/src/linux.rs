//! Debian's kernels, as `tools/linux-guest.sh` prepares them.

use std::path::{Path, PathBuf};
use std::process::Command;

use cli::flags::{Addition, NicFlag, RunFlags};

/// One of Debian's kernels, all of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The one for clouds: small, and of our cards it knows the paravirtual one only.
    Cloud,
    /// The same with the modules for paravirtual disks, which NVMe needs none of, and for the
    /// processor's instruction for the sums of ext4, which Debian loads by itself.
    Disk,
    /// The one for PCs.
    Generic,
}

impl Kernel {
    /// The kernel that drives the machine's card and its disks, if it has any.
    pub(crate) fn with(flags: &RunFlags) -> Self {
        match flags.nic {
            NicFlag::Virtio if flags.disk.is_empty() => Self::Cloud,
            NicFlag::Virtio => Self::Disk,
            NicFlag::E1000 | NicFlag::Igb => Self::Generic,
        }
    }

    /// Makes the kernel ready; a second time costs nothing.
    pub(crate) fn prepare(self) -> Result<(), String> {
        let prepared = Command::new("tools/linux-guest.sh")
            .arg(self.name())
            .status();
        match prepared.is_ok_and(|status| status.success()) {
            true => Ok(()),
            false => Err("Debian's Linux cannot be prepared as a guest: see above.".into()),
        }
    }

    /// The kernel's file.
    pub fn file(self) -> PathBuf {
        self.folder().join("vmlinuz")
    }

    /// What an image needs so that Linux finds the card and does what Sietch does by itself.
    pub(crate) fn additions(self) -> [Addition; 2] {
        ["init", "modules"].map(|name| Addition {
            host: self.folder().join(name),
            guest: Path::new("/").join(name),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::Disk => "disk",
            Self::Generic => "generic",
        }
    }

    fn folder(self) -> &'static Path {
        Path::new(match self {
            Self::Cloud => "build/linux",
            Self::Disk => "build/linux-disk",
            Self::Generic => "build/linux-generic",
        })
    }
}
