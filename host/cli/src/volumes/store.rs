//! The folder of volumes.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use ext4::Summary;

use super::lock::{Access, Lock};
use crate::failure::Failure;
use crate::flags::VolumeName;
use crate::state;

/// How a finished image's name ends.
const ENDING: &str = ".img";
/// How that of one in the making begins; the number of who makes it follows.
const DRAFT: &str = ".new-";

/// The user's volumes.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

/// One of them, which need not be there.
#[derive(Clone, Debug)]
pub struct Volume {
    name: VolumeName,
    path: PathBuf,
}

impl Store {
    /// Where the user's data belongs (XDG Base Directory Specification), readable by nobody else where
    /// we make it. What those left there goes that did not finish: one that was killed may have made its volume already, whose
    /// bytes the name of its draft would keep.
    ///
    /// Errors: `NoDataFolder`.
    pub fn of_user() -> Result<Self, Failure> {
        let store = state::data_folder("volumes").map(Self)?;
        store.sweep();
        Ok(store)
    }

    /// The folder, which need not be there.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The volume `name`, which need not be there.
    pub fn volume(&self, name: &VolumeName) -> Volume {
        Volume {
            name: name.clone(),
            path: self.0.join(format!("{name}{ENDING}")),
        }
    }

    /// Those that are there, by name.
    ///
    /// Errors: `File` if the folder is there and cannot be read.
    pub fn list(&self) -> Result<Vec<Volume>, Failure> {
        let listing = match fs::read_dir(&self.0) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Failure::file(&self.0)(error)),
        };
        let file_names = listing.flatten().map(|entry| entry.file_name());
        let mut names: Vec<VolumeName> = file_names
            .filter_map(|file| file.to_str()?.strip_suffix(ENDING)?.parse().ok())
            .collect();
        names.sort();
        Ok(names.iter().map(|name| self.volume(name)).collect())
    }

    /// Makes the folder.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(Failure::file(&self.0))
    }

    fn sweep(&self) {
        let drafts = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for draft in drafts.filter(|entry| is_abandoned(&entry.file_name().to_string_lossy())) {
            // Another one may have done it.
            let _ = fs::remove_file(draft.path());
        }
    }

    /// A name for an image that this process makes.
    pub(super) fn draft(&self, name: &VolumeName) -> PathBuf {
        self.0.join(format!("{DRAFT}{}-{name}", std::process::id()))
    }
}

/// Whether nobody makes the image of that name any more.
fn is_abandoned(file_name: &str) -> bool {
    let maker = || file_name.strip_prefix(DRAFT)?.split('-').next();
    maker().is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}

impl Volume {
    /// Its name.
    pub fn name(&self) -> &VolumeName {
        &self.name
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path.is_file()
    }

    /// Fails unless it is there.
    pub fn must_exist(&self) -> Result<(), Failure> {
        match self.exists() {
            true => Ok(()),
            false => Err(Failure::NoSuchVolume {
                name: self.name.to_string(),
            }),
        }
    }

    /// What its superblock says, `None` if it has none.
    pub fn summary(&self) -> Result<Option<Summary>, Failure> {
        let file = File::open(&self.path).map_err(Failure::file(&self.path))?;
        Ok(summary_of(&file))
    }

    /// Bytes that it takes of the host's disk.
    pub fn host_bytes(&self) -> u64 {
        const UNIT_BYTES: u64 = 512;
        let metadata = fs::metadata(&self.path);
        metadata.map_or(0, |metadata| metadata.blocks() * UNIT_BYTES)
    }

    /// When it was made, in seconds since the epoch, where the host's file system keeps that.
    pub fn created_s(&self) -> Option<u64> {
        let created = fs::metadata(&self.path).ok()?.created().ok()?;
        let age: Duration = created.duration_since(UNIX_EPOCH).ok()?;
        Some(age.as_secs())
    }

    /// The machines that use it and are listed.
    pub fn users(&self) -> Vec<String> {
        let uses = |settings: &state::Settings| settings.volumes.contains(&self.path);
        let users = state::running().into_iter().filter(uses);
        users.map(|settings| settings.name).collect()
    }

    /// Whether somebody uses it.
    pub fn is_in_use(&self) -> bool {
        Lock::is_taken(self)
    }

    /// Removes it, unless somebody uses it.
    pub fn remove(&self) -> Result<(), Failure> {
        let _alone = Lock::take(self, Access::Write)?;
        fs::remove_file(&self.path).map_err(Failure::file(&self.path))
    }

    /// It is somebody else's now.
    pub(super) fn in_use(&self) -> Failure {
        let name = self.name.to_string();
        match self.users().into_iter().next() {
            Some(machine) => Failure::VolumeInUse { name, machine },
            None => Failure::VolumeLocked { name },
        }
    }
}

/// What the superblock in `file` says.
pub(super) fn summary_of(file: &File) -> Option<Summary> {
    let mut superblock = [0; Summary::BYTES];
    file.read_exact_at(&mut superblock, Summary::OFFSET).ok()?;
    Summary::of(&superblock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_makes_any_more_is_abandoned() {
        let ours = std::process::id();
        assert!(!is_abandoned(&format!(".new-{ours}-db")));
        assert!(is_abandoned(".new-4194999-db-1"));
        assert!(!is_abandoned("db.img"));
    }
}
