//! New descriptors: the lowest free number, within the process' limit.

use alloc::sync::Arc;

use cred::{Capability, Resource};
use linux_raw_sys::general::O_CLOEXEC;
use sync::{Error, Result};
use vfs::file::{FileRef, OpenFile, StatusFlags};

use crate::call::Call;
use crate::errno::Errno;

impl Call<'_> {
    /// Gives `open` the lowest free number; `flags` may hold O_CLOEXEC.
    ///
    /// Errors: `TooManyFilesInSystem`, `TooManyFiles`, `OutOfMemory`.
    pub fn new_fd(&self, open: Arc<OpenFile>, flags: u32) -> Result<usize> {
        if OpenFile::count() > OpenFile::most() {
            let who = self.thread.credentials.get();
            let may_more = who.has(Capability::SysAdmin);
            may_more.then_some(()).ok_or(Error::TooManyFilesInSystem)?;
        }
        let close_on_exec = flags & O_CLOEXEC != 0;
        let files = self.thread.files.get();
        files
            .insert(open, close_on_exec, 0, self.fd_limit())
            .map(|fd| fd as usize)
    }

    /// The same for a new open file of `file`, with the status flags among `flags`.
    pub fn open_fd(&self, file: FileRef, access: StatusFlags, flags: u32) -> Result<usize> {
        let status = StatusFlags::from_bits_truncate(flags) & StatusFlags::CHANGEABLE;
        self.new_fd(OpenFile::new(file, access | status), flags)
    }

    /// What descriptors stay below (RLIMIT_NOFILE).
    pub fn fd_limit(&self) -> u32 {
        u32::try_from(self.thread.process.limits.soft(Resource::Files)).unwrap_or(u32::MAX)
    }

    /// Closes a number that was given in vain.
    pub fn close_fd(&self, fd: usize) {
        let files = self.thread.files.get();
        drop(files.remove(fd as u32));
    }
}

/// `flags`, if it has no bits beside `known`; EINVAL otherwise.
pub fn only(flags: u32, known: u32) -> core::result::Result<u32, Errno> {
    if flags & !known == 0 {
        Ok(flags)
    } else {
        Err(Errno::EINVAL)
    }
}
