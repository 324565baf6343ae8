//! Who may change the store, and which disks machines run on: flock(2), which ends with the process.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::error::{Error, Result};

/// The right to change the store.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Waits for it as long as somebody else has it.
    pub(super) fn take(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(Error::own(path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| Error::file(path)(error.into()))?;
        Ok(Self(file))
    }
}

/// A disk that stays where it is.
#[derive(Debug)]
pub(super) struct Use(File);

impl Use {
    /// Keeps it; `None` if it is not there, or just going, or not ours to read.
    pub(super) fn shared(path: &Path) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::PermissionDenied
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(Error::file(path)(error)),
        };
        flock(&file, FlockOperation::LockShared)
            .map_err(|error| Error::file(path)(error.into()))?;
        let names = file.metadata().map_err(Error::file(path))?.nlink();
        Ok((names > 0).then_some(Self(file)))
    }

    /// The file that is kept.
    pub(super) fn file(&self) -> &File {
        &self.0
    }

    /// Whether nobody keeps it. The store's lock keeps others from starting to, and one that we may not open is of no
    /// use to anybody.
    pub(super) fn is_free(path: &Path) -> Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(true),
            Err(error) => return Err(Error::file(path)(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(Error::file(path)(error.into())),
        }
    }

    /// Programs that are started from now on keep it, too.
    pub(super) fn inherit(&self, path: &Path) -> Result<()> {
        self.set(FdFlags::empty(), path)
    }

    /// Programs that are started from now on do not.
    pub(super) fn withhold(&self, path: &Path) -> Result<()> {
        self.set(FdFlags::CLOEXEC, path)
    }

    fn set(&self, flags: FdFlags, path: &Path) -> Result<()> {
        fcntl_setfd(&self.0, flags).map_err(|error| Error::file(path)(error.into()))
    }
}
