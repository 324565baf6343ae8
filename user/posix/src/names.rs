//! bind, listen, accept, shutdown, getsockname, getpeername.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use inet::{Endpoint, Events, Shutdown, Transport};

use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::Open;

/// Connections that may wait for a program at most (`net.core.somaxconn`).
const BACKLOG_MAX: u32 = 4096;

impl<L: Link> Host<L> {
    /// Whether sockets with this address of ours are on the queue: the kernel has all others.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        address.is_unspecified() || address == self.address.host()
    }

    /// Whether this peer is reached by the queue: others are the kernel's, and on this machine, but for a
    /// socket of ours that is bound to no address, which whoever has its port asks for by any of ours.
    pub fn reaches(&mut self, open: &Open, peer: Ipv4Addr, port: u16) -> bool {
        !peer.is_loopback() && !peer.is_unspecified() || self.serves(open.transport, port)
    }

    fn serves(&mut self, transport: Transport, port: u16) -> bool {
        let servers = self.opens().filter(|open| open.serves.load(Relaxed));
        let ids: Vec<_> = servers
            .filter(|open| open.transport == transport)
            .map(|open| open.id())
            .collect();
        let wanted = Ok(Endpoint::v4(Ipv4Addr::UNSPECIFIED, port));
        ids.into_iter()
            .any(|id| self.parts().0.local(id).map(v4) == wanted)
    }

    /// Names the socket's end.
    pub fn bind(&mut self, open: &Open, address: Ipv4Addr, port: u16) -> Result<()> {
        self.check_link()?;
        self.parts()
            .0
            .bind(open.id(), Endpoint::v4(address, port))?;
        open.settle();
        let serves = open.transport == Transport::Udp && port != 0;
        open.serves.store(serves, Relaxed);
        Ok(())
    }

    /// Lets peers connect.
    pub fn listen(&mut self, open: &Open, backlog: u32) -> Result<()> {
        self.check_link()?;
        if open.transport != Transport::Tcp {
            return Err(Errno::NOT_SUPPORTED);
        }
        let backlog = backlog.min(BACKLOG_MAX) as usize;
        self.parts().0.listen(open.id(), backlog)?;
        open.settle();
        open.serves.store(true, Relaxed);
        self.refresh(open);
        Ok(())
    }

    /// Whether a connection waits.
    ///
    /// Errors: `AGAIN` if none does; `INVALID` where none will.
    pub fn may_accept(&mut self, open: &Open) -> Result<()> {
        self.check_link()?;
        if open.transport != Transport::Tcp {
            return Err(Errno::NOT_SUPPORTED);
        }
        self.note_watched(open);
        let (stack, _) = self.parts();
        stack.accept_queue(open.id())?;
        match stack.poll(open.id()).contains(Events::READABLE) {
            true => Ok(()),
            false => Err(Errno::AGAIN),
        }
    }

    /// Gives the next connection a number; its peer.
    pub fn accept(&mut self, open: &Open, number: u32, is_nonblocking: bool) -> Result<Endpoint> {
        let (stack, world) = self.parts();
        let accepted = stack.accept(world, open.id());
        self.refresh(open);
        let id = accepted?;
        self.has_accepted = true;
        self.note_accept(open.ready().contains(epoll::Events::READABLE));
        let new = self.adopt(number, id, Transport::Tcp, is_nonblocking)?;
        new.settle();
        new.inherit_timeouts(open);
        // The peer may be gone already; the connection is still handed over.
        Ok(self.parts().0.remote(id).unwrap_or(Endpoint::ANY))
    }

    /// Ends one or both directions.
    pub fn shutdown(&mut self, open: &Open, how: Shutdown) -> Result<()> {
        self.check_link()?;
        let (stack, world) = self.parts();
        let done = stack.shutdown(world, open.id(), how);
        self.refresh(open);
        self.after_sending();
        Ok(done?)
    }

    /// Our end's name.
    pub fn local(&mut self, open: &Open) -> Result<Endpoint> {
        Ok(v4(self.parts().0.local(open.id())?))
    }

    /// The peer's.
    pub fn remote(&mut self, open: &Open) -> Result<Endpoint> {
        Ok(self.parts().0.remote(open.id())?)
    }

    /// The socket is none of ours any more: the kernel's of the same number takes its place.
    ///
    /// Errors: `INVALID` for one with a name or a peer.
    pub fn give_up(&mut self, number: u32) -> Result<()> {
        let open: Arc<Open> = self.socket(number)?;
        if open.is_settled() {
            return Err(Errno::INVALID);
        }
        self.close(number);
        Ok(())
    }
}

fn v4(name: Endpoint) -> Endpoint {
    match name.addr {
        IpAddr::V4(_) => name,
        IpAddr::V6(_) => Endpoint::v4(Ipv4Addr::UNSPECIFIED, name.port),
    }
}
