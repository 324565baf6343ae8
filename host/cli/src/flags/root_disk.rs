//! `--root-disk`: where the machine's root is.

use std::path::PathBuf;
use std::str::FromStr;

use super::VolumeName;

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
}
