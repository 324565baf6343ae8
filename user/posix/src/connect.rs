//! connect, which for a stream may end later than the call (connect(2)); as `kernel/inet-sockets/src/tcp/mod.rs`.

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering::Relaxed;

use inet::{Endpoint, State, Transport};

use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::Open;

impl<L: Link> Host<L> {
    /// Starts to connect, or asks how an earlier start has ended.
    ///
    /// Errors: `IN_PROGRESS` or `ALREADY` while the peer has not answered:
    /// [`finish_connecting`](Self::finish_connecting) tells.
    pub fn connect(&mut self, open: &Open, host: Ipv4Addr, port: u16) -> Result<()> {
        self.check_link()?;
        let peer = Endpoint::v4(host, port);
        match open.transport {
            Transport::Udp => self.connect_datagrams(open, peer),
            Transport::Tcp => self.connect_stream(open, peer),
        }
    }

    fn connect_datagrams(&mut self, open: &Open, peer: Endpoint) -> Result<()> {
        let (stack, world) = self.parts();
        stack.connect(world, open.id(), peer)?;
        open.settle();
        open.serves.store(false, Relaxed);
        Ok(())
    }

    fn connect_stream(&mut self, open: &Open, peer: Endpoint) -> Result<()> {
        if self.is_connecting(open) {
            return Err(Errno::ALREADY);
        }
        if open.is_outcome_untold.swap(false, Relaxed) {
            return self.take_error(open);
        }
        let (stack, world) = self.parts();
        stack.connect(world, open.id(), peer)?;
        open.settle();
        open.is_outcome_untold.store(true, Relaxed);
        self.refresh(open);
        self.flush();
        Err(Errno::IN_PROGRESS)
    }

    /// Takes a datagram socket's peer away.
    ///
    /// Errors: `BAD_FAMILY` for a stream.
    pub fn disconnect(&mut self, open: &Open) -> Result<()> {
        match open.transport {
            Transport::Udp => Ok(self.parts().0.disconnect(open.id())?),
            Transport::Tcp => Err(Errno::BAD_FAMILY),
        }
    }

    fn is_connecting(&mut self, open: &Open) -> bool {
        let state = self.parts().0.state(open.id());
        matches!(state, Ok(State::SynSent | State::SynReceived))
    }

    /// How connecting has ended.
    ///
    /// Errors: `AGAIN` while it has not.
    pub fn finish_connecting(&mut self, open: &Open) -> Result<()> {
        self.check_link()?;
        if self.is_connecting(open) {
            return Err(Errno::AGAIN);
        }
        open.is_outcome_untold.store(false, Relaxed);
        self.take_error(open)
    }

    fn take_error(&mut self, open: &Open) -> Result<()> {
        let error = self.parts().0.take_error(open.id());
        self.refresh(open);
        error.map_or(Ok(()), |error| Err(error.into()))
    }
}
