//! A Unix socket as those know it who find sockets: names, the list, the search for garbage.
//!
//! They stand below the kinds of socket and refer to them weakly; who looks for a socket of one
//! kind narrows what it finds.

use alloc::sync::Weak;
use core::any::Any;

use sockets::UnixFacts;

/// A socket of either kind.
pub(super) trait Endpoint: Any + Send + Sync {
    /// Throws away what it has received, and connections that wait to be accepted.
    fn empty(&self);

    /// What tools see of it.
    fn facts(&self) -> UnixFacts;
}

/// The socket behind a name or a number, which may be gone.
pub(super) type Node = Weak<dyn Endpoint>;
