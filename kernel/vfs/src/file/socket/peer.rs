//! Who is at the other end of a connection, as more than three numbers.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;

use super::PeerCredentials;

/// A program, as it was when it connected or listened.
#[derive(Clone)]
pub struct PeerIdentity {
    /// SO_PEERCRED.
    pub credentials: PeerCredentials,
    /// SO_PEERGROUPS: its further groups.
    pub groups: Arc<Vec<u32>>,
    /// Its process: the number may have another owner by now. What that is, those know who have
    /// processes.
    pub process: Weak<dyn Any + Send + Sync>,
}
