//! What the machine is called, and what system programs take it for (uname(2)).
//!
//! Programs may change the names of host and domain. Those of a UTS namespace see the change,
//! the others do not.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible;
use mach::sync::{Once, Spin};
use sync::{Error, Result};

use vfs::file::next_namespace_number;

/// The longest name of a host or domain in bytes (Linux's __NEW_UTS_LEN).
pub const NAME_BYTES_MAX: usize = 64;

/// The system's name.
pub const SYSTEM: &str = "Linux";
/// The release that programs see: what we offer is about Linux 6.12.
pub const RELEASE: &str = "6.12.0-sietch";
/// The version that programs see.
pub const VERSION: &str = "#1 SMP PREEMPT_DYNAMIC Sietch";
/// The processor's architecture.
pub const MACHINE: &str = "x86_64";

/// A name that programs may change.
pub struct Changeable(Spin<Vec<u8>>);

/// The names that the programs of a UTS namespace see (uts_namespaces(7)).
pub struct Names {
    /// The namespace's inode number.
    pub number: u64,
    /// The machine's name.
    pub host: Changeable,
    /// The NIS domain's name.
    pub domain: Changeable,
}

/// Those of the first program.
pub fn first() -> Arc<Names> {
    /// The names of the machine's first program; other programs hold others.
    static FIRST: Once<Arc<Names>> = Once::new();
    let first = || Names::new(b"sietch".to_vec(), b"(none)".to_vec());
    FIRST.call_once(|| Arc::new(first())).clone()
}

impl Names {
    fn new(host: Vec<u8>, domain: Vec<u8>) -> Self {
        Self {
            number: next_namespace_number(),
            host: Changeable(Spin::new(host)),
            domain: Changeable(Spin::new(domain)),
        }
    }

    /// A namespace with the same names.
    ///
    /// Errors: `OutOfMemory`.
    pub fn copy(&self) -> Result<Arc<Self>> {
        Ok(fallible::arc(Self::new(
            self.host.get(),
            self.domain.get(),
        ))?)
    }
}

impl Changeable {
    /// The name now.
    pub fn get(&self) -> Vec<u8> {
        self.0.lock().clone()
    }

    /// Changes it. Errors: `Invalid` if it is too long.
    pub fn set(&self, name: &[u8]) -> Result<()> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::Invalid);
        }
        let old = core::mem::replace(&mut *self.0.lock(), name.to_vec());
        drop(old);
        Ok(())
    }
}
