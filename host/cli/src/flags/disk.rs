//! `--disk`: a file of the host, and how it is one.

use std::path::PathBuf;
use std::str::FromStr;

use qemu::DiskFormat;

/// `FILE[,format=raw|qcow2][,ro]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFlag {
    /// The file on the host.
    pub file: PathBuf,
    /// What is in it.
    pub format: DiskFormat,
    /// Whether the machine may only read.
    pub read_only: bool,
    /// For tests (`bad-sector=N`): a sector that can be neither read nor written.
    pub bad_sector: Option<u64>,
}

impl FromStr for DiskFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give FILE[,format=raw|qcow2][,ro]";
        let mut words = text.split(',');
        let file = words.next().filter(|file| !file.is_empty()).ok_or(FORM)?;
        let mut disk = Self {
            file: file.into(),
            format: DiskFormat::Raw,
            read_only: false,
            bad_sector: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("format", "raw")) => disk.format = DiskFormat::Raw,
                Some(("format", "qcow2")) => disk.format = DiskFormat::Qcow2,
                Some(("bad-sector", sector)) => {
                    disk.bad_sector = Some(sector.parse().map_err(|_| FORM)?);
                }
                None if word == "ro" => disk.read_only = true,
                _ => return Err(FORM.into()),
            }
        }
        Ok(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_file_and_what_is_said_of_it() {
        let disk: DiskFlag = "a/b.qcow2,format=qcow2,ro".parse().unwrap();
        assert_eq!(disk.file, PathBuf::from("a/b.qcow2"));
        assert_eq!((disk.format, disk.read_only), (DiskFormat::Qcow2, true));
        let disk: DiskFlag = "b,bad-sector=7".parse().unwrap();
        assert_eq!((disk.format, disk.bad_sector), (DiskFormat::Raw, Some(7)));
        for wrong in ["", ",ro", "a,format=vmdk", "a,rw", "a,bad-sector=x"] {
            assert!(wrong.parse::<DiskFlag>().is_err(), "{wrong}");
        }
    }
}
