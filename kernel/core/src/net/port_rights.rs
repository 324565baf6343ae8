//! Ports below `net.ipv4.ip_unprivileged_port_start` are for CAP_NET_BIND_SERVICE: who serves
//! there is taken for the machine's own.

use core::sync::atomic::{AtomicU16, Ordering};

use crate::error::{Error, Result};
use crate::task::{Capability, current};

/// The first port that anybody may take.
pub static FIRST_FREE: AtomicU16 = AtomicU16::new(1024);

/// Whether the current thread may name a socket by `port`; 0 stands for any free one.
///
/// Errors: `AccessDenied`.
pub(super) fn check(port: u16) -> Result<()> {
    let is_free = port == 0 || port >= FIRST_FREE.load(Ordering::Relaxed);
    let is_privileged = || {
        current()
            .credentials
            .with(|who| who.has(Capability::NetBindService))
    };
    match is_free || is_privileged() {
        true => Ok(()),
        false => Err(Error::AccessDenied),
    }
}
