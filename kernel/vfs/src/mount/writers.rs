//! Who has files open for writing, and when a mount may become read-only.
//!
//! An open file for writing counts itself first and looks for the flag then; a remount sets the
//! flag first and looks for the count then. So one of the two sees the other.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use sync::{Error, Result};

use super::{Mount, MountFlags, SuperBlock};

/// Somebody who writes to a file on a mount.
pub struct Writer(Arc<Mount>);

impl Writer {
    /// One more.
    pub fn count(mount: &Arc<Mount>) -> Self {
        mount.writers.fetch_add(1, Ordering::SeqCst);
        mount.block.writers.fetch_add(1, Ordering::SeqCst);
        Self(mount.clone())
    }

    /// The same where it is allowed.
    ///
    /// Errors: `ReadOnly`.
    pub fn begin(mount: &Arc<Mount>) -> Result<Self> {
        let writer = Self::count(mount);
        mount.check_writable().map(|()| writer)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.block.writers.fetch_sub(1, Ordering::SeqCst);
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Mount {
    /// Changes how it is mounted.
    ///
    /// Errors: `Busy` if it would become read-only under a file that is open for writing.
    pub fn set_flags(&self, flags: MountFlags) -> Result<()> {
        let old = self.flags.swap(flags.bits(), Ordering::SeqCst);
        let closes = flags.contains(MountFlags::RDONLY) && old & MountFlags::RDONLY.bits() == 0;
        if closes && self.writers.load(Ordering::SeqCst) > 0 {
            self.flags.store(old, Ordering::SeqCst);
            return Err(Error::Busy);
        }
        Ok(())
    }
}

impl SuperBlock {
    /// Allows or forbids changes, whichever mount they come through.
    ///
    /// Errors: `Busy` as above.
    pub fn set_read_only(&self, read_only: bool) -> Result<()> {
        let old = self.is_read_only.swap(read_only, Ordering::SeqCst);
        if read_only && !old && self.writers.load(Ordering::SeqCst) > 0 {
            self.is_read_only.store(old, Ordering::SeqCst);
            return Err(Error::Busy);
        }
        Ok(())
    }
}
