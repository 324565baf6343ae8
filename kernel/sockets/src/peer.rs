//! The program at the other end as a process.

use alloc::sync::Arc;

use sync::{Error, Result};
use task::{Process, current};
use vfs::socket::{PeerCredentials, PeerIdentity};

/// Who calls.
pub fn current_identity() -> PeerIdentity {
    let thread = current();
    let credentials = thread.credentials.get();
    let process: Arc<dyn core::any::Any + Send + Sync> = thread.process.clone();
    PeerIdentity {
        credentials: PeerCredentials {
            pid: thread.process.id(),
            uid: credentials.user.effective,
            gid: credentials.group.effective,
        },
        groups: credentials.groups.clone(),
        process: Arc::downgrade(&process),
    }
}

/// The process itself (SO_PEERPIDFD).
///
/// Errors: `NoSuchProcess` once it is gone.
pub fn process_of(peer: &PeerIdentity) -> Result<Arc<Process>> {
    let process = peer.process.upgrade().and_then(|any| any.downcast().ok());
    process.ok_or(Error::NoSuchProcess)
}
