//! Who may use a volume: locks on its file.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::store::Volume;
use crate::failure::Failure;

/// How often a lock is tried before it is somebody else's.
const TRIES: u32 = 10;
/// The same where no machine has it: the command of one that has just ended may not have.
const TRIES_WITHOUT_MACHINE: u32 = 500;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// What a holder does with the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads, as others may.
    Read,
    /// It changes it, and nobody else has it.
    Write,
}

/// A volume that is ours to use, until this is dropped and all programs have ended that inherited it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes it.
    ///
    /// Errors: `VolumeInUse`, `NoSuchVolume` if it has just gone.
    pub fn take(volume: &Volume, access: Access) -> Result<Self, Failure> {
        let path = volume.path();
        let no_such = || Failure::NoSuchVolume {
            name: volume.name().to_string(),
        };
        let file = OpenOptions::new()
            .read(true)
            .write(access == Access::Write)
            .open(path)
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => no_such(),
                _ => Failure::file(path)(error),
            })?;
        match patiently(&file, access, volume) {
            Ok(()) if is_still(&file, path) => Ok(Self(file)),
            Ok(()) => Err(no_such()),
            Err(Errno::WOULDBLOCK) => Err(volume.in_use()),
            Err(error) => Err(Failure::file(path)(error.into())),
        }
    }

    /// Whether others use it, so that it could not be changed now.
    pub(super) fn is_taken(volume: &Volume) -> bool {
        let file = File::open(volume.path());
        file.is_ok_and(|file| try_lock(&file, Access::Write) == Err(Errno::WOULDBLOCK))
    }

    /// The file.
    pub(super) fn file(&self) -> &File {
        &self.0
    }

    /// Lets other readers in.
    pub(super) fn share(&self, volume: &Volume) -> Result<(), Failure> {
        try_lock(&self.0, Access::Read).map_err(|_| volume.in_use())
    }

    /// Programs that we start from now on hold it, too.
    pub(super) fn inherit(&self, volume: &Volume) -> Result<(), Failure> {
        self.set(FdFlags::empty(), volume)
    }

    /// Programs that we start from now on do not.
    pub(super) fn withhold(&self, volume: &Volume) -> Result<(), Failure> {
        self.set(FdFlags::CLOEXEC, volume)
    }

    fn set(&self, flags: FdFlags, volume: &Volume) -> Result<(), Failure> {
        fcntl_setfd(&self.0, flags).map_err(|error| Failure::file(volume.path())(error.into()))
    }
}

/// Waits a little: who only looks whether a volume is used holds it for a moment.
fn patiently(file: &File, access: Access, volume: &Volume) -> Result<(), Errno> {
    let has_machine = || matches!(volume.in_use(), Failure::VolumeInUse { .. });
    for tried in 1..TRIES_WITHOUT_MACHINE {
        match try_lock(file, access) {
            Err(Errno::WOULDBLOCK) if tried < TRIES || !has_machine() => {
                thread::sleep(BETWEEN_TRIES);
            }
            tried => return tried,
        }
    }
    try_lock(file, access)
}

fn try_lock(file: &File, access: Access) -> Result<(), Errno> {
    flock(
        file,
        match access {
            Access::Read => FlockOperation::NonBlockingLockShared,
            Access::Write => FlockOperation::NonBlockingLockExclusive,
        },
    )
}

/// Whether the file still has its name: who removes a volume holds its lock.
fn is_still(file: &File, path: &Path) -> bool {
    let place = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (ours, named) = (file.metadata(), path.metadata());
    matches!((&ours, &named), (Ok(ours), Ok(named)) if place(ours) == place(named))
}
