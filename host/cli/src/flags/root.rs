//! Where the machine's root is, and where changes of it go.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::VolumeName;

/// What of these is not given: the image that `sietch` packs.
#[derive(Clone, Debug, Default, Args)]
pub struct RootFlags {
    /// Have a disk as the root, a volume by its name or a file by its path: what is changed there stays, unless there
    /// is --overlay. PROGRAM is a path on that disk, or a name to search there; /dev/vda is this disk
    #[arg(long, value_name = "NAME|FILE", group = "own_root", conflicts_with_all = ["add", "bypass", "log"])]
    pub root_disk: Option<RootDisk>,
    /// Have a folder of the host as the root, with all that PROGRAM needs in it. It is only read: changes go where
    /// --overlay says
    #[arg(long, value_name = "FOLDER", group = "own_root", conflicts_with_all = ["add", "bypass", "log"])]
    pub rootfs: Option<PathBuf>,
    /// Have the host's own files as the root, so that each program that is installed there runs as it is. They are
    /// only read: changes go where --overlay says
    #[arg(long, group = "own_root", conflicts_with_all = ["add", "bypass", "log"])]
    pub host_root: bool,
    /// Where changes of the root go: memory, or a volume by its name (made if it is not there) [default:
    /// memory with --rootfs and --host-root]
    #[arg(long, value_name = "memory|NAME", requires = "own_root")]
    pub overlay: Option<Overlay>,
    /// Let programs change nothing of the root but what is mounted in it
    #[arg(long)]
    pub read_only: bool,
    /// With --read-only: have /tmp, /run and /var/tmp in memory
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    pub read_only_tmpfs: bool,
    /// How much /dev/shm can hold, such as 64m
    #[arg(long, value_name = "SIZE", value_parser = parse_shm)]
    pub shm_size: Option<Tmpfs>,
    /// Mount an empty file system in memory
    #[arg(long, value_name = "GUEST[:size=SIZE][,mode=OCTAL]")]
    pub tmpfs: Vec<Tmpfs>,
}

impl RootFlags {
    /// File systems in memory that other flags stand for.
    pub(super) fn settle(&mut self) {
        self.tmpfs.extend(self.shm_size.take());
        if self.read_only && self.read_only_tmpfs {
            for (guest, mode) in [("/tmp", "1777"), ("/run", "755"), ("/var/tmp", "1777")] {
                self.tmpfs.push(Tmpfs {
                    guest: guest.into(),
                    options: format!("mode={mode}"),
                });
            }
        }
    }

    /// Whether the program is in a root of its own, and not to be packed.
    pub fn is_own(&self) -> bool {
        self.root_disk.is_some() || self.folder().is_some()
    }

    /// The folder of the host that is the root.
    pub fn folder(&self) -> Option<&Path> {
        match self.host_root {
            true => Some(Path::new("/")),
            false => self.rootfs.as_deref(),
        }
    }

    /// Where changes go, if not where the root is.
    pub fn overlay(&self) -> Option<&Overlay> {
        let default = self.folder().map(|_| &Overlay::Memory);
        self.overlay.as_ref().or(default)
    }

    /// File systems in memory: those asked for, and what hides folders of the host that are its own affair.
    pub fn tmpfs(&self) -> Vec<Tmpfs> {
        let mut all = self.tmpfs.clone();
        let hidden = HIDDEN.into_iter().filter(|_| self.host_root);
        for guest in hidden {
            if all.iter().all(|tmpfs| tmpfs.guest != guest) {
                all.push(Tmpfs {
                    guest: guest.into(),
                    options: String::new(),
                });
            }
        }
        all
    }
}

/// What is the host's own affair, beside what each root has new; all may write there. `/var/lock` leads to the second.
const HIDDEN: [&str; 2] = ["/tmp", "/run/lock"];

/// `memory|NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Changes go when the machine goes.
    Memory,
    /// Changes are in this volume, and stay.
    Volume(VolumeName),
}

impl FromStr for Overlay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "memory" => Ok(Self::Memory),
            name => name.parse().map(Self::Volume),
        }
    }
}

/// `GUEST[:OPTIONS]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tmpfs {
    /// Where it is mounted.
    pub guest: String,
    /// As mount(8) has them, checked.
    pub options: String,
}

impl FromStr for Tmpfs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (guest, options) = text.split_once(':').unwrap_or((text, ""));
        if !guest.starts_with('/') {
            return Err("give an absolute path".into());
        }
        let is_size = |text: &str| {
            let digits = text.strip_suffix(['k', 'm', 'g', 'K', 'M', 'G']);
            digits.unwrap_or(text).parse::<u64>().is_ok()
        };
        let is_known = |option: &str| match option.split_once('=') {
            Some(("size", size)) => is_size(size),
            // As docker's lines have them, and what is so.
            None if option == "rw" => true,
            Some(("mode", mode)) => u32::from_str_radix(mode, 8).is_ok_and(|mode| mode <= 0o7777),
            _ => false,
        };
        let mut given = options.split(',').filter(|option| !option.is_empty());
        match given.find(|option| !is_known(option)) {
            Some(option) => Err(format!("{option} is neither size=SIZE nor mode=OCTAL")),
            None => Ok(Self {
                guest: guest.into(),
                options: known(options),
            }),
        }
    }
}

fn parse_shm(text: &str) -> Result<Tmpfs, String> {
    let size = text.to_ascii_lowercase();
    format!("/dev/shm:size={},mode=1777", size.trim_end_matches('b')).parse()
}

/// Without what is so in any case, which docker's lines have.
fn known(options: &str) -> String {
    let told: Vec<&str> = options
        .split(',')
        .filter(|option| !matches!(*option, "" | "rw"))
        .collect();
    told.join(",")
}

/// `NAME|FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootDisk {
    /// A volume.
    Volume(VolumeName),
    /// A file of the host that holds an ext4 file system from its first byte on.
    File(PathBuf),
}

impl FromStr for RootDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match VolumeName::is_path(text) {
            true => Ok(Self::File(text.into())),
            false => text.parse().map(Self::Volume),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_volume_by_its_name_or_a_file_by_its_path() {
        let root: RootDisk = "debian".parse().unwrap();
        assert_eq!(root, RootDisk::Volume("debian".parse().unwrap()));
        let root: RootDisk = "./debian.img".parse().unwrap();
        assert_eq!(root, RootDisk::File("./debian.img".into()));
        assert!("".parse::<RootDisk>().is_err());
    }

    #[test]
    fn changes_go_to_memory_or_to_a_volume() {
        assert_eq!("memory".parse(), Ok(Overlay::Memory));
        let volume = Overlay::Volume("kept".parse().unwrap());
        assert_eq!("kept".parse(), Ok(volume));
        assert!("./file".parse::<Overlay>().is_err());
    }

    #[test]
    fn a_file_system_in_memory_has_a_place_and_known_options() {
        let tmpfs: Tmpfs = "/cache:size=64m,mode=700".parse().unwrap();
        assert_eq!(tmpfs.guest, "/cache");
        assert_eq!(tmpfs.options, "size=64m,mode=700");
        assert!("/cache".parse::<Tmpfs>().is_ok());
        for wrong in ["cache", "/cache:size=much", "/cache:mode=9", "/cache:exec"] {
            assert!(wrong.parse::<Tmpfs>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_keeps_its_own_tmp() {
        let host = RootFlags {
            host_root: true,
            ..RootFlags::default()
        };
        assert_eq!(host.tmpfs().len(), HIDDEN.len());
        assert_eq!(host.overlay(), Some(&Overlay::Memory));
        assert!(RootFlags::default().tmpfs().is_empty());
    }
}
