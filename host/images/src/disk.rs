//! A file of the host as the disk on which `core/ext4` writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use ext4::{Device, DeviceError, Durability};

/// The file; the file system above it says only that its disk has failed, so why is kept here.
pub(crate) struct Disk {
    file: File,
    bytes: u64,
    is_read_only: bool,
    failure: Failure,
}

/// The first error of a disk.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    /// Takes it, if there was one.
    pub(crate) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note(&self, error: io::Error) -> DeviceError {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        DeviceError
    }
}

impl Disk {
    /// For changes.
    pub(crate) fn new(file: File) -> io::Result<(Self, Failure)> {
        Self::of(file, false)
    }

    /// For reading.
    pub(crate) fn read_only(file: File) -> io::Result<(Self, Failure)> {
        Self::of(file, true)
    }

    fn of(file: File, is_read_only: bool) -> io::Result<(Self, Failure)> {
        let failure = Failure::default();
        let disk = Self {
            bytes: file.metadata()?.len(),
            file,
            is_read_only,
            failure: failure.clone(),
        };
        Ok((disk, failure))
    }
}

impl Device for Disk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let read = self.file.read_exact_at(into, offset);
        read.map_err(|error| self.failure.note(error))
    }

    fn write(
        &mut self,
        offset: u64,
        from: &[u8],
        _durability: Durability,
    ) -> Result<(), DeviceError> {
        let written = self.file.write_all_at(from, offset);
        written.map_err(|error| self.failure.note(error))
    }

    /// Nothing of a root counts before all of it does, and then the file is flushed.
    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}
