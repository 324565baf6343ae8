//! The network of a thread (network_namespaces(7)), as far as is known below the network.
//!
//! A thread holds a stack for its children and its next sockets, and looks at nothing in it. The
//! stack is `kernel/net`'s, which knows its own again by its type; a socket keeps the stack in
//! which it was made, so that only making one asks the thread.

use alloc::sync::Arc;
use core::any::Any;

use mach::sync::Once;
use sync::Result;

/// What a network namespace is made of.
pub trait NetNamespace: Any + Send + Sync {
    /// The inode number of the namespace.
    fn number(&self) -> u64;

    /// A new one with nothing but loopback.
    ///
    /// Errors: `OutOfMemory`.
    fn create_another(&self) -> Result<Arc<dyn NetNamespace>>;
}

/// The machine's: that of its first program.
static FIRST: Once<Arc<dyn NetNamespace>> = Once::new();

/// Says what the first program's network is; at boot, before there is any thread.
pub fn init(first: Arc<dyn NetNamespace>) {
    FIRST.call_once(|| first);
}

/// The first program's.
pub fn first() -> Arc<dyn NetNamespace> {
    // tidy: the boot has said it before there was a thread.
    FIRST.get().expect("the boot names a network first").clone()
}
