//! A socket goes over to the kernel's stack, which is told of it call by call and knows nothing of our bytes.
//!
//! A connection stands still from the moment that it is told, as one does that goes to another process (`moving`); then it is
//! [forgotten](Host::forget_moved) here, or [goes on](Host::reattach).

use std::sync::Arc;

use epoll::Watch;
use inet::{Endpoint, TcpSnapshot};

use super::SocketState;
use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::Open;
use crate::options::OptionBytes;
use crate::sets::WatchSet;

/// What another stack is told of a socket.
pub enum Portable {
    /// It has no name.
    Unnamed,
    /// It has a name and no peer.
    Named(Endpoint),
    /// It waits for peers, and so many of them may wait for the program.
    Listening(Endpoint, u32),
    /// A connection, which stands still now.
    Connected(Box<TcpSnapshot>),
    /// Datagrams to and from one peer: our end, and the peer's.
    Datagrams(Endpoint, Endpoint),
}

/// Options that the kernel's socket has to be told: that of a connection that was accepted knows nothing of its listener's.
const OPTIONS: [(i32, i32); 13] = [
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_CORK),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
];

impl<L: Link> Host<L> {
    /// What another stack has to be told. A connection stands still from then on.
    ///
    /// Errors: `INVALID` for one that is being made or is over, `NETWORK_DOWN`, `NO_BUFFERS`.
    pub fn portable(&mut self, open: &Open) -> Result<Portable> {
        self.check_link()?;
        Ok(match self.record(open, &[])?.state {
            SocketState::Unconnected(None) => Portable::Unnamed,
            SocketState::Unconnected(Some(local)) => Portable::Named(local),
            SocketState::Listening((local, backlog), _) => Portable::Listening(local, backlog),
            SocketState::Connected(snapshot) => {
                let (stack, world) = self.parts();
                stack.freeze(world, open.id())?;
                self.refresh(open);
                Portable::Connected(Box::new(snapshot))
            }
            SocketState::Datagrams((local, remote)) => Portable::Datagrams(local, remote),
            SocketState::Connecting(_) | SocketState::Past(_) => return Err(Errno::INVALID),
        })
    }

    /// A connection that stands still can go on nowhere: its peer is told.
    pub fn reset_moved(&mut self, open: &Open) {
        let (stack, world) = self.parts();
        // Without memory for it its peer is told when it asks.
        stack.thaw(world, open.id(), false).ok();
        stack.abort(world, open.id()).ok();
        self.flush();
    }

    /// Options that were set, or come of a listener: level, name, value.
    pub fn portable_options(&mut self, open: &Open) -> Vec<(i32, i32, OptionBytes)> {
        let all = OPTIONS.into_iter();
        let value = |(level, name)| Some((level, name, self.option(open, level, name)?.ok()?));
        all.filter_map(value).collect()
    }
}

impl WatchSet {
    /// Whether it watches any socket.
    pub fn has_members(&self) -> bool {
        let mut has_any = false;
        self.members(|_, _, _| has_any = true);
        has_any
    }

    /// What it watches of a socket: by which numbers, and for what.
    pub fn watches(&self, open: &Arc<Open>) -> Vec<(u32, Watch)> {
        let mut found = Vec::new();
        self.members(|number, member, watch| {
            if Arc::ptr_eq(member, open) {
                found.push((number, watch));
            }
        });
        found
    }
}
