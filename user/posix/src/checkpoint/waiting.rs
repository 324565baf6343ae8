//! What waits in a socket that goes over to the kernel's stack: datagrams to be read, connections to be accepted.

use std::net::SocketAddrV4;

use inet::{Endpoint, Error, TcpSnapshot};

use super::moving::v4;
use crate::errno::Result;
use crate::host::{Host, Link};
use crate::open::Open;

/// A datagram that nobody has read.
#[derive(PartialEq, Eq, Debug)]
pub struct WaitingDatagram {
    /// Who sent it.
    pub from: Endpoint,
    /// Hops that it might still have made.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub tos: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl<L: Link> Host<L> {
    /// Takes the datagrams that wait to be read.
    pub fn take_waiting_datagrams(&mut self, open: &Open) -> Vec<WaitingDatagram> {
        let (stack, _) = self.parts();
        let mut found = Vec::new();
        loop {
            match stack.recv_from(open.id()) {
                Ok(datagram) => found.push(WaitingDatagram {
                    from: datagram.from,
                    hop_limit: datagram.hop_limit,
                    tos: datagram.tos,
                    bytes: datagram.payload.slices().flatten().copied().collect(),
                }),
                Err(Error::WouldBlock | Error::BadSocket | Error::InvalidState) => return found,
                // It is told once, and is over.
                Err(_) => {}
            }
        }
    }

    /// Both ends of the connections that wait to be accepted, ours first.
    ///
    /// Errors: `INVALID` for what does not listen, `NO_BUFFERS`.
    pub fn waiting_ends(&mut self, open: &Open) -> Result<Vec<(SocketAddrV4, SocketAddrV4)>> {
        let (stack, world) = self.parts();
        let waiting = stack.waiting_snapshots(world, open.id())?;
        let ends = |it: &TcpSnapshot| v4(it.local).zip(v4(it.remote));
        Ok(waiting.iter().filter_map(ends).collect())
    }

    /// Takes the connections that wait to be accepted out of this stack, without a word to their peers. Those that are over
    /// are closed.
    pub fn take_waiting_connections(&mut self, open: &Open) -> Vec<TcpSnapshot> {
        let (stack, world) = self.parts();
        stack.export_waiting(world, open.id())
    }
}
