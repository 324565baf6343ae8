//! All Unix sockets in order of their numbers, for tools.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::Bound;

use mach::sync::Spin;

use super::endpoint::{Endpoint, Node};
use sockets::UnixFacts;

/// All Unix sockets, for /proc/net/unix and `ss -x`.
static ALL: Spin<BTreeMap<u64, Node>> = Spin::new(BTreeMap::new());

/// A socket was made.
pub(super) fn enter(number: u64, socket: Node) {
    ALL.lock().insert(number, socket);
}

/// A socket is gone.
pub(super) fn leave(number: u64) {
    ALL.lock().remove(&number);
}

/// The socket with this number.
pub(super) fn find(number: u64) -> Option<Arc<dyn Endpoint>> {
    ALL.lock().get(&number)?.upgrade()
}

/// The facts of the socket with the next number after that.
pub fn next_socket(after: u64) -> Option<UnixFacts> {
    let mut last = after;
    loop {
        let behind = (Bound::Excluded(last), Bound::Unbounded);
        let (number, node) = {
            let all = ALL.lock();
            let (number, node) = all.range(behind).next()?;
            (*number, node.clone())
        };
        let facts = node.upgrade().map(|socket| socket.facts());
        // One without facts is just going.
        if facts.is_some() {
            return facts;
        }
        last = number;
    }
}
