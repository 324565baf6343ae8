//! Ports below `net.ipv4.ip_unprivileged_port_start` are for CAP_NET_BIND_SERVICE: who serves
//! there is taken for the machine's own.

use core::sync::atomic::Ordering;

use cred::Capability;
use sync::{Error, Result};

use net::stack::NetStack;

/// Whether the current thread may name a socket by `port`; 0 stands for any free one.
///
/// Errors: `AccessDenied`.
pub(crate) fn check(stack: &NetStack, port: u16) -> Result<()> {
    let is_free = port == 0 || port >= stack.first_free_port.load(Ordering::Relaxed);
    let is_privileged = || cred::credentials().with(|who| who.has(Capability::NetBindService));
    match is_free || is_privileged() {
        true => Ok(()),
        false => Err(Error::AccessDenied),
    }
}
