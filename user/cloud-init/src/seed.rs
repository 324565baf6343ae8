//! The NoCloud seed: a disk labelled `cidata` with the files `meta-data`, `user-data` and `network-config`.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::{TEXT_BYTES_MAX, disk, fat, iso9660};

/// In either case: FAT has capitals only.
const LABEL: &str = "cidata";

/// Texts of a seed or of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    /// The instance: YAML.
    pub meta_data: String,
    /// The user's wishes: mostly `#cloud-config`.
    pub user_data: String,
    /// The network: YAML; DHCP if it says nothing.
    pub network_config: String,
}

/// The first disk's that has one.
pub fn find() -> Option<Seed> {
    disk::all().iter().find_map(|path| match read(path) {
        Ok(seed) => seed,
        Err(why) => {
            eprintln!("sietch: {} was not read: {why}", path.display());
            None
        }
    })
}

/// The seed on a disk, if it is one.
pub fn read(path: &Path) -> io::Result<Option<Seed>> {
    let open = || disk::open(path);
    // What cannot be read that far, such as a disk without a medium, is none.
    let iso = iso9660::Volume::open(open()?).ok().flatten();
    if let Some(mut volume) = iso {
        return match volume.label.eq_ignore_ascii_case(LABEL) {
            true => of_files(|name| volume.read(name)).map(Some),
            false => Ok(None),
        };
    }
    let fat: Option<fat::Volume<File>> = fat::Volume::open(open()?);
    match fat.filter(|volume| volume.is_labelled(LABEL)) {
        Some(mut volume) => of_files(|name| volume.read(name)).map(Some),
        None => Ok(None),
    }
}

/// The seed whose files `read` reads.
fn of_files(mut read: impl FnMut(&str) -> io::Result<Option<Vec<u8>>>) -> io::Result<Seed> {
    let mut text = |name| {
        let bytes = read(name)?.unwrap_or_default();
        match bytes.len() > TEXT_BYTES_MAX {
            true => Err(io::Error::other(format!("{name} is too long"))),
            false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        }
    };
    let seed = Seed {
        meta_data: text("meta-data")?,
        user_data: text("user-data")?,
        network_config: text("network-config")?,
    };
    match seed == Seed::default() {
        true => Err(io::Error::other("it has no meta-data and no user-data")),
        false => Ok(seed),
    }
}
