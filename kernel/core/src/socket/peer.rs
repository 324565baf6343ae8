//! Who is at the other end of a connection, as more than three numbers.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use sync::{Error, Result};

use super::PeerCredentials;
use crate::task::{Process, current};

/// A program, as it was when it connected or listened.
#[derive(Clone)]
pub struct PeerIdentity {
    /// SO_PEERCRED.
    pub credentials: PeerCredentials,
    /// SO_PEERGROUPS: its further groups.
    pub groups: Arc<Vec<u32>>,
    /// Its number may have another owner by now.
    process: Weak<Process>,
}

impl PeerIdentity {
    /// Who calls.
    pub fn of_current() -> Self {
        let thread = current();
        let credentials = thread.credentials.get();
        Self {
            credentials: PeerCredentials {
                pid: thread.process.id(),
                uid: credentials.user.effective,
                gid: credentials.group.effective,
            },
            groups: credentials.groups.clone(),
            process: Arc::downgrade(&thread.process),
        }
    }

    /// The process itself (SO_PEERPIDFD).
    ///
    /// Errors: `NoSuchProcess` once it is gone.
    pub fn process(&self) -> Result<Arc<Process>> {
        self.process.upgrade().ok_or(Error::NoSuchProcess)
    }
}
