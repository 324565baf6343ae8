//! Snapshots of machines: what is kept, and where.
//!
//! A folder for each in the user's data folder: what QEMU needs (`qemu::snapshot`), and [`Saved`]. It is made beside its place
//! and renamed into it, so a snapshot is there as a whole or not at all. One of the same name changes places with it, and goes
//! then; machines that came of the old one keep its memory, which they have open. What a process that was killed left beside goes
//! when the next snapshot is made.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use qemu::{Forward, Machine, Origin};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::state::{self, Settings};
use crate::stdio::StdFile;

/// How a folder's name begins that is in the making, or on its way out; the number of whose it is follows.
const DRAFT: &str = ".new-";
/// What stands between in the name of one on its way out.
const OLD: &str = "old-";
const SAVED: &str = "snapshot.json";

/// What is known of a machine, beside its memory and devices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// The machine as it was started.
    pub machine: Machine,
    /// What was known of the machine.
    pub settings: Settings,
    /// What the program has at descriptors 0, 1 and 2.
    pub files: [StdFile; 3],
    /// When it was saved, in seconds since the epoch.
    pub at_s: u64,
}

/// A snapshot, which need not be there.
#[derive(Clone, Debug)]
pub struct Snapshot {
    name: String,
    folder: PathBuf,
}

/// Where the user's snapshots are.
fn base() -> Result<PathBuf, Failure> {
    state::data_folder("snapshots")
}

/// The process that makes or removes a snapshot in a folder of this name.
fn maker(folder_name: &str) -> Option<u32> {
    let rest = folder_name.strip_prefix(DRAFT)?;
    let rest = rest.strip_prefix(OLD).unwrap_or(rest);
    rest.split_once('-')?.0.parse().ok()
}

/// All that are there, by name.
pub fn all() -> Result<Vec<(Snapshot, Saved)>, Failure> {
    let base = base()?;
    let listing = fs::read_dir(&base).into_iter().flatten().flatten();
    let mut names: Vec<String> = listing
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let snapshots = names.into_iter().filter_map(|name| {
        let folder = base.join(&name);
        let snapshot = Snapshot { name, folder };
        let saved = snapshot.saved().ok()?;
        Some((snapshot, saved))
    });
    Ok(snapshots.collect())
}

/// Why those cannot be used that are there and damaged.
pub fn damaged() -> Vec<Failure> {
    let base = base().ok();
    let listing = base.and_then(|base| fs::read_dir(base).ok());
    let names = listing.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let snapshots = names.filter(|name| !name.starts_with('.'));
    let tried = snapshots.filter_map(|name| {
        let snapshot = Snapshot::of(&name).ok()?;
        let saved = snapshot.saved();
        let machine = saved.and_then(|saved| snapshot.machine(&saved, Vec::new(), Path::new("")));
        let failure = machine.err()?;
        let is_damaged = !matches!(failure, Failure::SnapshotWithoutDisk { .. });
        is_damaged.then_some(Failure::BadSnapshot { name })
    });
    tried.collect()
}

impl Snapshot {
    /// That of this name.
    pub fn of(name: &str) -> Result<Self, Failure> {
        Ok(Self {
            name: name.into(),
            folder: base()?.join(name),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is of.
    pub fn saved(&self) -> Result<Saved, Failure> {
        let name = || self.name.clone();
        let text = fs::read(self.folder.join(SAVED));
        let text = text.map_err(|_| Failure::NoSuchSnapshot { name: name() })?;
        serde_json::from_slice(&text).map_err(|_| Failure::BadSnapshot { name: name() })
    }

    /// A machine that goes on from it, with these ports of the host, and its files in `state`.
    pub fn machine(
        &self,
        saved: &Saved,
        forwards: Vec<Forward>,
        state: &Path,
    ) -> Result<Machine, Failure> {
        if !qemu::snapshot::is_whole(&self.folder, saved.machine.memory_mib) {
            return Err(Failure::BadSnapshot {
                name: self.name.clone(),
            });
        }
        let mut files = saved.machine.disks.iter().map(|disk| &disk.file);
        if let Some(path) = files.find(|file| !file.exists()) {
            return Err(Failure::SnapshotWithoutDisk {
                name: self.name.clone(),
                path: path.clone(),
            });
        }
        Ok(Machine {
            forwards,
            state: state.into(),
            origin: Origin::Snapshot(self.folder.clone()),
            ..saved.machine.clone()
        })
    }

    /// Makes it: `write` is given a folder for memory and devices.
    pub fn make(
        &self,
        saved: &Saved,
        write: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let draft = self.beside("");
        self.sweep();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&draft)
            .map_err(Failure::file(&draft))?;
        let text = serde_json::to_vec_pretty(saved).unwrap_or_default();
        let made = fs::write(draft.join(SAVED), text)
            .map_err(Failure::file(&draft))
            .and_then(|()| write(&draft))
            .and_then(|()| self.replace(&draft));
        if made.is_err() {
            let _ = fs::remove_dir_all(&draft);
        }
        made
    }

    fn replace(&self, draft: &Path) -> Result<(), Failure> {
        if renameat_with(CWD, draft, CWD, &self.folder, RenameFlags::EXCHANGE).is_ok() {
            // What is left of the old one is swept later.
            let _ = fs::remove_dir_all(draft);
            return Ok(());
        }
        // There is no old one, or the file system cannot exchange.
        let _ = self.remove();
        fs::rename(draft, &self.folder).map_err(Failure::file(&self.folder))
    }

    /// Removes what processes left beside it that have ended, or had the number of this one.
    fn sweep(&self) {
        let base = self.folder.parent();
        let listing = base.and_then(|base| fs::read_dir(base).ok());
        for entry in listing.into_iter().flatten().flatten() {
            let maker = entry.file_name().to_str().and_then(maker);
            let is_there = |pid: u32| Path::new("/proc").join(pid.to_string()).exists();
            if maker.is_some_and(|pid| pid == std::process::id() || !is_there(pid)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Removes it.
    pub fn remove(&self) -> Result<(), Failure> {
        let name = self.name.clone();
        let left = self.beside(OLD);
        fs::rename(&self.folder, &left).map_err(|_| Failure::NoSuchSnapshot { name })?;
        fs::remove_dir_all(&left).map_err(Failure::file(left))
    }

    fn beside(&self, what: &str) -> PathBuf {
        let name = format!("{DRAFT}{what}{}-{}", std::process::id(), self.name);
        self.folder.with_file_name(name)
    }

    /// Bytes that it takes of the host's disk.
    pub fn host_bytes(&self) -> u64 {
        const UNIT_BYTES: u64 = 512;
        let listing = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = listing.filter_map(|entry| entry.metadata().ok());
        files.map(|file| file.blocks() * UNIT_BYTES).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    /// As high no number of a process is.
    const NOBODY: u32 = 1 << 30;

    /// A snapshot in a folder for one test, and that folder.
    fn scene(name: &str) -> (Snapshot, PathBuf) {
        let base = env::temp_dir().join(format!("sietch-{name}-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let snapshot = Snapshot {
            name: "warm".into(),
            folder: base.join("warm"),
        };
        (snapshot, base)
    }

    fn folder(path: PathBuf, text: &str) -> PathBuf {
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("memory"), text).unwrap();
        path
    }

    fn names(base: &Path) -> Vec<String> {
        let listing = fs::read_dir(base).unwrap();
        let mut names: Vec<String> = listing
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let (snapshot, base) = scene("swept");
        // The first process is always there.
        for kept in ["warm", ".new-1-warm", ".new-old-1-a-b"] {
            folder(base.join(kept), "");
        }
        for left in [
            format!(".new-{NOBODY}-warm"),
            format!(".new-{OLD}{NOBODY}-a-b"),
        ] {
            folder(base.join(left), "");
        }
        snapshot.sweep();
        let left = names(&base);
        fs::remove_dir_all(base).unwrap();
        assert_eq!(left, [".new-1-warm", ".new-old-1-a-b", "warm"]);
    }

    #[test]
    fn a_snapshot_takes_the_place_of_another_of_its_name() {
        let (snapshot, base) = scene("replaced");
        for text in ["first", "second"] {
            let draft = folder(snapshot.beside(""), text);
            snapshot.replace(&draft).unwrap();
            let found = fs::read_to_string(snapshot.folder.join("memory"));
            assert_eq!(found.unwrap(), text);
        }
        let left = names(&base);
        fs::remove_dir_all(base).unwrap();
        assert_eq!(left, ["warm"]);
    }
}
