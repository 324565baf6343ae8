//! Which sockets there are: their numbers, and who listens to which group.
//!
//! A bound socket has a number that no other of its protocol has in its network namespace, mostly
//! its program's. The table refers weakly; a socket leaves it when it goes. It is one for all
//! namespaces, as tools that list sockets and the quick look whether anybody listens want it.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use mach::sync::Spin;
use sync::{Error, Result};
use task::Pid;

use super::NetlinkSocket;
use crate::endpoint::queue::Datagram;
use crate::protocol::Protocol;
use net::NetStack;

/// Namespace, protocol and number.
type Key = (u64, Protocol, u32);

/// Of all stacks, whose numbers are part of the key: a process finds the others by number only.
static SOCKETS: Spin<BTreeMap<Key, Weak<NetlinkSocket>>> = Spin::new(BTreeMap::new());

/// The highest number that the kernel chooses; further ones count down (as Linux does, so
/// that they meet no program's).
const CHOSEN_MAX: u32 = -4097_i32 as u32;
/// Numbers that are tried.
const TRIES_MAX: u32 = 1 << 16;

/// Gives `socket` the number `wanted`, or if that is 0, its program's or another free one.
///
/// Errors: `AddressInUse`, also if all are.
pub(super) fn assign(socket: &Arc<NetlinkSocket>, wanted: u32, program: Pid) -> Result<u32> {
    let mut sockets = SOCKETS.lock();
    let endpoint = &socket.endpoint;
    // Another thread may have been faster.
    if let Some(port) = endpoint.bound_port() {
        return Ok(port);
    }
    let is_free =
        |port: &u32| !sockets.contains_key(&(endpoint.stack.number, endpoint.protocol, *port));
    let port = match wanted {
        0 => {
            let chosen = (0..TRIES_MAX).map(|step| CHOSEN_MAX - step);
            core::iter::once(program).chain(chosen).find(is_free)
        }
        wanted => Some(wanted).filter(is_free),
    };
    let port = port.ok_or(Error::AddressInUse)?;
    let key = (endpoint.stack.number, endpoint.protocol, port);
    sockets.insert(key, Arc::downgrade(socket));
    endpoint.set_port(port);
    Ok(port)
}

/// The socket with this number is gone.
pub(super) fn release(stack: &NetStack, protocol: Protocol, port: u32) {
    SOCKETS.lock().remove(&(stack.number, protocol, port));
}

/// All sockets with a number.
fn all() -> Vec<Arc<NetlinkSocket>> {
    let sockets = SOCKETS.lock();
    sockets.values().filter_map(Weak::upgrade).collect()
}

/// Gives those in `group` a copy of `bytes`.
pub(crate) fn publish(stack: &NetStack, protocol: Protocol, group: u32, bytes: &[u8]) {
    for socket in all() {
        let endpoint = &socket.endpoint;
        if endpoint.stack.number == stack.number
            && endpoint.protocol == protocol
            && endpoint.is_member(group)
        {
            let bytes = bytes.to_vec();
            endpoint.push(Datagram { bytes, group });
        }
    }
}

/// A socket as /proc/net/netlink lists it.
pub struct Listed {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its number.
    pub port: u32,
    /// Groups that it is in; bit `n - 1` for group `n`.
    pub groups: u64,
    /// Bytes that wait to be read.
    pub queued_bytes: usize,
    /// Whether a dump is under way.
    pub has_dump: bool,
    /// Datagrams that were lost.
    pub dropped: u64,
    /// The number of its file.
    pub inode: u64,
}

/// All sockets of a stack with a number, by protocol.
pub fn list(stack: &NetStack) -> Vec<Listed> {
    let all = all().into_iter();
    let own = all.filter(|socket| socket.endpoint.stack.number == stack.number);
    own.map(|socket| socket.listed()).collect()
}
