//! Sockets get names.

use core::cell::Cell;
use core::net::Ipv6Addr;

use base::Instant;

use crate::addr::{Endpoint, SocketId, Transport};
use crate::boxed::Boxed;
use crate::error::Error;
use crate::options::Options;
use crate::ports::{Bound, Sharing};
use crate::stack::Stack;
use crate::table::Socket;
use crate::tcp::{State, Tcb};
use crate::udp::UdpSocket;

/// Ports that are tried for one that fits before any is taken.
const FITTING_TRIES: u32 = 128;

pub(super) fn sharing_of(options: &Options, is_listening: bool) -> Sharing {
    Sharing {
        reuse_address: options.reuse_address,
        reuse_port: options.reuse_port,
        is_v6_only: options.v6_only,
        is_listening,
        owner: options.owner,
        device: options.device,
    }
}

impl Stack {
    /// Makes a socket.
    pub fn open(&mut self, transport: Transport) -> Result<SocketId, Error> {
        self.open_as(transport, Endpoint::ANY)
    }

    /// Makes a socket of IPv6. Bound to no address it also hears IPv4, unless its options say
    /// otherwise.
    pub fn open_v6(&mut self, transport: Transport) -> Result<SocketId, Error> {
        self.open_as(transport, Endpoint::v6(Ipv6Addr::UNSPECIFIED, 0))
    }

    fn open_as(&mut self, transport: Transport, local: Endpoint) -> Result<SocketId, Error> {
        let config = &self.net.config;
        let ttl = config.hops_to(local.addr);
        self.sockets.insert(|id| match transport {
            Transport::Tcp => {
                let mut tcb = Tcb::new(id);
                tcb.tuple.local = local;
                tcb.options = Options {
                    ttl,
                    ..config.stream
                };
                Boxed::new(tcb).map(Socket::Tcp)
            }
            Transport::Udp => {
                let mut socket = UdpSocket::new(id, local);
                socket.options = Options {
                    ttl,
                    ..config.datagram
                };
                Boxed::new(socket).map(Socket::Udp)
            }
        })
    }

    /// Names the socket's end. Port zero picks an ephemeral one.
    pub fn bind(&mut self, id: SocketId, local: Endpoint) -> Result<(), Error> {
        match self.net.is_bindable(local.addr) {
            true => self.bind_elsewhere(id, local),
            false => Err(Error::AddressNotAvailable),
        }
    }

    /// A port that no datagram socket has, for the socket `id`: one that `fits`, if the next few
    /// of the range have such.
    pub fn choose_datagram_port(
        &mut self,
        id: SocketId,
        fits: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let offset = self.offset_of(id);
        let ports = &mut self.net.demux.udp;
        let left = Cell::new(FITTING_TRIES);
        let is_tried = |port| match left.get() {
            0 => true,
            tries => {
                left.set(tries - 1);
                fits(port)
            }
        };
        ports.ephemeral(offset, is_tried)
    }

    /// Where in the range the search for a port of this socket begins.
    fn offset_of(&self, id: SocketId) -> u64 {
        let key = self.net.key;
        key.hash(u64::from(id.index), u64::from(id.generation))
    }

    /// The same where the address may be that of another shard of the host: the socket keeps the
    /// name here, so that nobody else gets it.
    pub fn bind_elsewhere(&mut self, id: SocketId, local: Endpoint) -> Result<(), Error> {
        let is_tcp = match self.sockets.get(id)? {
            Socket::Tcp(tcb) if tcb.state == State::Closed && tcb.tuple.local.port == 0 => true,
            Socket::Udp(socket) if socket.local.port == 0 => false,
            Socket::Frozen(_) => return self.bind_frozen(id, local),
            _ => return Err(Error::InvalidState),
        };
        let options = *self.options(id)?;
        let sharing = sharing_of(&options, false);
        let offset = self.offset_of(id);
        let ports = if is_tcp {
            &mut self.net.demux.tcp
        } else {
            &mut self.net.demux.udp
        };
        let mut local = local;
        if local.port == 0 {
            local.port = ports
                .ephemeral(offset, |_| true)
                .ok_or(Error::AddressInUse)?;
        }
        ports.bind(
            local.port,
            Bound {
                index: id.index,
                local: local.addr,
                peer: None,
                sharing,
            },
        )?;
        match self.sockets.get_mut(id)? {
            Socket::Tcp(tcb) => {
                tcb.tuple.local = local;
                tcb.is_bound = true;
            }
            Socket::Udp(socket) => (socket.local, socket.bound) = (local, local.addr),
            _ => {}
        }
        Ok(())
    }

    /// Our end; port zero if it has no name yet.
    pub fn local(&self, id: SocketId) -> Result<Endpoint, Error> {
        match self.sockets.get(id)? {
            Socket::Tcp(tcb) => Ok(tcb.tuple.local),
            Socket::Listener(listener) => Ok(listener.local),
            Socket::Udp(socket) => Ok(socket.local),
            Socket::Frozen(frozen) => Ok(frozen.snapshot.local),
            Socket::Free { .. } => Err(Error::BadSocket),
        }
    }

    /// The peer's end.
    pub fn remote(&self, id: SocketId) -> Result<Endpoint, Error> {
        match self.sockets.get(id)? {
            Socket::Tcp(tcb) if tcb.tuple.remote.port != 0 && tcb.state != State::Closed => {
                Ok(tcb.tuple.remote)
            }
            Socket::Udp(socket) => socket.peer.ok_or(Error::NotConnected),
            Socket::Frozen(frozen) if frozen.snapshot.state != State::Closed => {
                Ok(frozen.snapshot.remote)
            }
            _ => Err(Error::NotConnected),
        }
    }

    /// Gives the entry of a datagram socket in its port the socket's names.
    pub(crate) fn rename_datagram(&mut self, id: SocketId) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        socket.drop_template();
        let (local, peer) = (socket.local, socket.peer);
        if let Some(entry) = self.net.demux.udp.entry(local.port, id.index) {
            entry.local = local.addr;
            entry.peer = peer;
        }
        Ok(())
    }

    /// Names our end of a connection to `remote`, without an entry for the port: the
    /// connection's four-tuple suffices.
    pub(crate) fn choose_local(
        &mut self,
        bound: Endpoint,
        remote: Endpoint,
        now: Instant,
    ) -> Result<Endpoint, Error> {
        let mut local = bound;
        if local.addr.is_unspecified() {
            local.addr = self.net.source_for(remote.addr)?;
        }
        if local.addr.is_ipv4() != remote.addr.is_ipv4() {
            return Err(Error::NetworkUnreachable);
        }
        if local.port == 0 {
            let chosen = self.net.free_port(local, remote, now);
            local.port = chosen.ok_or(Error::AddressNotAvailable)?;
        }
        Ok(local)
    }
}
