//! `sietch volume` and the volumes of `-v`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Subcommand};
use qemu::FolderServer;

use super::{ByteSize, InspectOutput, OutputFlags, VolumeName};

/// `sietch volume`.
#[derive(Debug, Subcommand)]
pub enum VolumeCommand {
    /// Make a volume: a disk with a file system, which outlives machines
    Create(CreateFlags),
    /// List the volumes
    #[command(visible_alias = "list")]
    Ls(OutputFlags),
    /// Remove volumes with all that they hold
    #[command(visible_alias = "remove")]
    Rm(NamesFlags),
    /// Show all that is known of volumes, as JSON
    Inspect(VolumeInspectFlags),
    /// Check a volume's file system, and mend what can be mended without a loss
    Fsck(FsckFlags),
}

/// `sietch volume create`.
#[derive(Debug, Args)]
pub struct CreateFlags {
    /// The most that it can hold; the host's disk is taken only as it fills [default: 10G]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<ByteSize>,
    /// Fill it with a copy of a folder, owners included
    #[arg(long, value_name = "FOLDER")]
    pub from: Option<PathBuf>,
    /// Its name
    pub name: VolumeName,
}

/// `sietch volume inspect`.
#[derive(Debug, Args)]
pub struct VolumeInspectFlags {
    /// The form.
    #[command(flatten)]
    pub output: InspectOutput,
    /// The volumes.
    #[command(flatten)]
    pub volumes: NamesFlags,
}

/// `sietch volume rm` and `inspect`.
#[derive(Debug, Args)]
pub struct NamesFlags {
    /// The volumes
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<VolumeName>,
}

/// `sietch volume fsck`.
#[derive(Debug, Args)]
pub struct FsckFlags {
    /// Only look: change nothing
    #[arg(short = 'n', long, conflicts_with = "repair")]
    pub dry_run: bool,
    /// Mend all that is damaged, even if files are lost by it
    #[arg(long)]
    pub repair: bool,
    /// The volume
    pub name: VolumeName,
}

/// `-v`: `SOURCE:guest[:OPTIONS]`, words with commas between: `ro`, `rw`, `host`, `virtiofs`, `9p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What is mounted.
    pub source: MountSource,
    /// Where it appears in the machine.
    pub guest: String,
    /// Whether the machine may only read.
    pub read_only: bool,
}

impl Mount {
    /// The same where a path that is not absolute begins at `directory`.
    #[must_use]
    pub fn within(mut self, directory: &Path) -> Self {
        if let MountSource::Folder { path, .. } = &mut self.source {
            *path = directory.join(&*path);
        }
        self
    }
}

/// What `-v` mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountSource {
    /// A folder of the host.
    Folder {
        /// It.
        path: PathBuf,
        /// Whether owners are the host's also where the machine cannot change those.
        host_owners: bool,
        /// Who serves it.
        server: FolderServer,
    },
    /// A volume by its name.
    Volume(VolumeName),
}

impl FromStr for Mount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give NAME:GUEST[:ro] or HOST:GUEST[:ro|:host|:virtiofs] with an absolute path for GUEST";
        let (paths, words) = match text.rsplit_once(':') {
            Some((paths, words)) if words.split(',').all(is_option) => (paths, words),
            _ => (text, "rw"),
        };
        let has = |word| words.split(',').any(|other| other == word);
        let (source, guest) = match paths.rsplit_once(':') {
            Some((source, guest)) if !source.is_empty() && guest.starts_with('/') => {
                (source, guest)
            }
            _ => return Err(FORM.into()),
        };
        let source = match VolumeName::is_path(source) {
            true if has("virtiofs") && (has("host") || has("9p")) => {
                return Err(
                    "virtiofs has the host's owners and is not 9P: leave out host and 9p".into(),
                );
            }
            true => MountSource::Folder {
                path: source.into(),
                host_owners: has("host"),
                server: match has("virtiofs") {
                    true => FolderServer::Virtiofsd,
                    false => FolderServer::NineP,
                },
            },
            false if has("host") => {
                return Err("a volume has owners of its own: leave out :host".into());
            }
            false if has("virtiofs") || has("9p") => {
                return Err("a volume is a disk: leave out virtiofs and 9p".into());
            }
            false => MountSource::Volume(source.parse()?),
        };
        Ok(Self {
            source,
            guest: guest.into(),
            read_only: has("ro"),
        })
    }
}

/// Whether it is a word about a mount, and not a path.
fn is_option(word: &str) -> bool {
    matches!(word, "ro" | "rw" | "host" | "virtiofs" | "9p")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_host_are_mounted_read_only_on_request() {
        let mount: Mount = "/srv/data:/data:ro".parse().expect("valid");
        assert_eq!((mount.guest.as_str(), mount.read_only), ("/data", true));
        let folder = |path: &str, host_owners| MountSource::Folder {
            path: path.into(),
            host_owners,
            server: FolderServer::NineP,
        };
        assert_eq!(mount.source, folder("/srv/data", false));
        let mount: Mount = "./data:/data:host".parse().expect("valid");
        assert_eq!(mount.source, folder("./data", true));
        assert!(!mount.read_only);
        for wrong in ["/srv/data", "/srv:data", ":/data", ""] {
            assert!(wrong.parse::<Mount>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_word_says_who_serves_a_folder() {
        let mount: Mount = "/srv:/data:ro,virtiofs".parse().expect("valid");
        let by = |server| MountSource::Folder {
            path: "/srv".into(),
            host_owners: false,
            server,
        };
        assert_eq!(mount.source, by(FolderServer::Virtiofsd));
        assert!(mount.read_only);
        let mount: Mount = "/srv:/data:9p".parse().expect("valid");
        assert_eq!(mount.source, by(FolderServer::NineP));
        assert!(!mount.read_only);
        for wrong in [
            "/srv:/data:virtiofs,host",
            "/srv:/data:9p,virtiofs",
            "db:/data:virtiofs",
        ] {
            assert!(wrong.parse::<Mount>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_without_a_slash_is_a_volume() {
        let mount: Mount = "db:/var/lib/db".parse().expect("valid");
        assert_eq!(mount.source, MountSource::Volume("db".parse().unwrap()));
        assert!(!mount.read_only);
        assert!("db:/data:ro".parse::<Mount>().expect("valid").read_only);
        for wrong in ["db", "db:data", "d b:/data", "db:/data:host"] {
            assert!(wrong.parse::<Mount>().is_err(), "{wrong:?}");
        }
    }
}
