//! What the machine is called, and what system programs take it for (uname(2)).

use alloc::vec::Vec;

use mach::sync::Spin;

use crate::error::{Error, Result};

/// The longest name of a host or domain in bytes (Linux' __NEW_UTS_LEN).
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
pub struct Changeable {
    name: Spin<Vec<u8>>,
    first: &'static str,
}

/// The machine's name.
pub static HOST: Changeable = Changeable::new("sietch");
/// The NIS domain's name.
pub static DOMAIN: Changeable = Changeable::new("(none)");

impl Changeable {
    const fn new(first: &'static str) -> Self {
        Self {
            name: Spin::new(Vec::new()),
            first,
        }
    }

    /// The name now.
    pub fn get(&self) -> Vec<u8> {
        let name = self.name.lock();
        if name.is_empty() {
            self.first.as_bytes().to_vec()
        } else {
            name.clone()
        }
    }

    /// Changes it. Errors: `Invalid` if it is too long.
    pub fn set(&self, name: &[u8]) -> Result<()> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::Invalid);
        }
        *self.name.lock() = name.to_vec();
        Ok(())
    }
}
