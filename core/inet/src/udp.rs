//! Datagram sockets.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use mbuf::{Chain, ChecksumOffload};
use wire::{Protocol, Sum, UDP_HEADER_BYTES, UdpRepr, UdpView};

use crate::addr::{Addresses, Endpoint, FourTuple, SocketId};
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::counters6::Snmp6;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::icmp::Fate;
use crate::input::IpInfo;
use crate::ip::IpHeader;
use crate::options::Options;
use crate::output::{CachedRoute, Offload};
use crate::stack::Stack;
use crate::table::Socket;

/// A received datagram.
#[derive(Debug)]
pub struct Datagram {
    /// Who sent it.
    pub from: Endpoint,
    /// Which of our addresses it was sent to.
    pub to: Endpoint,
    /// Hops that it might still have made.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub tos: u8,
    /// Its bytes.
    pub payload: Chain,
}

impl Datagram {
    fn new(info: &IpInfo, (from, to): (Endpoint, Endpoint), payload: Chain) -> Self {
        Self {
            from,
            to,
            hop_limit: info.hop_limit,
            tos: info.tos,
            payload,
        }
    }
}

/// What a datagram has of its own, instead of what its socket has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Letter {
    /// Who shall get it; the peer if none.
    pub to: Option<Endpoint>,
    /// Which of our addresses it shall come from.
    pub from: Option<IpAddr>,
    /// Hops that it may make.
    pub hop_limit: Option<u8>,
    /// DSCP and ECN bits.
    pub tos: Option<u8>,
}

impl From<Option<Endpoint>> for Letter {
    fn from(to: Option<Endpoint>) -> Self {
        Self {
            to,
            ..Self::default()
        }
    }
}

/// A datagram socket.
pub(crate) struct UdpSocket {
    pub id: SocketId,
    /// Port zero: not bound.
    pub local: Endpoint,
    /// What a program has bound it to, for when the peer is taken away.
    pub bound: IpAddr,
    pub peer: Option<Endpoint>,
    pub options: Options,
    pub error: Option<Error>,
    pub is_read_shut: bool,
    /// Groups that it has joined.
    pub groups: Vec<IpAddr>,
    /// The way of the last datagram sent, and whose way it was.
    route: CachedRoute,
    routed: Option<Addresses>,
    queue: VecDeque<Datagram>,
    queued_bytes: usize,
}

impl UdpSocket {
    /// A socket of the family of `local`, which names nothing.
    pub fn new(id: SocketId, local: Endpoint) -> Self {
        Self {
            id,
            local,
            bound: local.addr,
            peer: None,
            options: Options::default(),
            error: None,
            is_read_shut: false,
            groups: Vec::new(),
            route: CachedRoute::NONE,
            routed: None,
            queue: VecDeque::new(),
            queued_bytes: 0,
        }
    }

    /// Memory that waiting datagrams are charged with.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Memory that a datagram is charged with: its buffers, however little they hold.
    fn charge(datagram: &Datagram) -> usize {
        size_of::<Datagram>() + datagram.payload.footprint()
    }

    fn push(&mut self, datagram: Datagram) -> Result<(), DropReason> {
        let charge = Self::charge(&datagram);
        // Linux doubles SO_RCVBUF to account for overhead; here the buffers count instead.
        let limit = 2 * self.options.recv_buffer as usize;
        if self.is_read_shut || self.queued_bytes + charge > limit && !self.queue.is_empty() {
            return Err(DropReason::QueueFull);
        }
        self.queued_bytes += charge;
        self.queue.push_back(datagram);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<Datagram> {
        let datagram = self.queue.pop_front()?;
        self.queued_bytes -= Self::charge(&datagram);
        Some(datagram)
    }

    pub fn front(&self) -> Option<&Datagram> {
        self.queue.front()
    }

    pub fn poll(&self) -> Events {
        let mut events = Events::WRITABLE;
        events.set(
            Events::READABLE,
            !self.queue.is_empty() || self.error.is_some(),
        );
        events.set(Events::ERROR, self.error.is_some());
        if self.is_read_shut {
            events |= Events::READABLE | Events::READ_CLOSED;
        }
        events
    }
}

impl Stack {
    /// Takes a datagram. Of one that no socket wants, `packet` is left whole.
    pub(crate) fn udp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: &mut Chain,
    ) -> Result<(), DropReason> {
        let result = self.try_udp_input(env, info, packet);
        if info.dst().is_ipv6() {
            self.net.count6(match result {
                Ok(()) => Snmp6::UdpInDatagrams,
                Err(DropReason::NoSocket) => Snmp6::UdpNoPorts,
                Err(_) => Snmp6::UdpInErrors,
            });
        }
        result
    }

    fn try_udp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: &mut Chain,
    ) -> Result<(), DropReason> {
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = UdpView::parse(bytes, packet.len())?;
        let from = Endpoint::new(info.src(), header.src_port());
        let to = Endpoint::new(info.dst(), header.dst_port());
        let (len, has_checksum) = (header.len(), header.has_checksum());
        packet.truncate(len);
        // RFC 8200 8.1: over IPv6 a checksum is not left out.
        let is_bare = !has_checksum && to.addr.is_ipv6() && !info.is_checked;
        if is_bare || has_checksum && !info.verify(Protocol::Udp, packet) {
            return Err(DropReason::BadChecksum);
        }
        if self.dhcp_input(env, from, to, packet) {
            return Ok(());
        }
        if to.addr.is_multicast() {
            return self.multicast_input(env, info, (from, to), packet);
        }
        let key = self.net.key;
        let spread = || {
            key.tuple(&FourTuple {
                local: to,
                remote: from,
            })
        };
        let index = self
            .net
            .demux
            .udp
            .find(to, from, spread)
            .ok_or(DropReason::NoSocket)?;
        let mut payload = core::mem::take(packet);
        payload.advance(UDP_HEADER_BYTES);
        let datagram = Datagram::new(info, (from, to), payload);
        self.queue_datagram(env, index, datagram)
    }

    /// Each socket that has joined the group gets a share.
    fn multicast_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        (from, to): (Endpoint, Endpoint),
        packet: &Chain,
    ) -> Result<(), DropReason> {
        let members: Vec<u32> = self.net.demux.udp.find_all(to, from).collect();
        let mut result = Err(DropReason::NoSocket);
        for index in members {
            let is_member = matches!(self.sockets.at_mut(index),
                Some(Socket::Udp(socket)) if socket.groups.contains(&to.addr));
            if is_member {
                let payload = packet.share(UDP_HEADER_BYTES, packet.len());
                let datagram = Datagram::new(info, (from, to), payload);
                let queued = self.queue_datagram(env, index, datagram);
                result = result.or(queued);
            }
        }
        result
    }

    fn queue_datagram<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        datagram: Datagram,
    ) -> Result<(), DropReason> {
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        self.net.stats.counts.count(Count::UdpIn);
        socket.push(datagram)?;
        env.wake(socket.id, Events::READABLE);
        Ok(())
    }

    /// A datagram of `sent` bytes, headers included, did not arrive.
    pub(crate) fn udp_lost<E: Env>(
        &mut self,
        env: &mut E,
        tuple: &FourTuple,
        sent: u16,
        fate: Fate,
    ) -> Result<(), DropReason> {
        let index = self
            .net
            .demux
            .udp
            .find(tuple.local, tuple.remote, || 0)
            .ok_or(DropReason::NoSocket)?;
        let error = match fate {
            Fate::Lost(error) => error,
            Fate::TooBig(mtu) => {
                let mut cx = self.context(env);
                cx.learn_mtu(tuple.remote.addr, mtu, sent)
                    .ok_or(DropReason::Suspicious)?;
                Error::MessageTooLong
            }
        };
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        // Like Linux: a socket without a peer could not tell which datagram it was.
        if socket.peer == Some(tuple.remote) {
            socket.error = Some(error);
            env.wake(
                socket.id,
                Events::READABLE | Events::WRITABLE | Events::ERROR,
            );
        }
        Ok(())
    }

    /// Sends a datagram of `len` bytes that `fill` writes in order, piece by piece. If `fill`
    /// writes less than it is offered, nothing is sent and 0 is returned: the caller's copy
    /// failed there.
    pub fn send_to<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        letter: impl Into<Letter>,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        let letter = letter.into();
        let socket = self.sockets.udp_mut(id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let to = letter
            .to
            .or(socket.peer)
            .ok_or(Error::DestinationRequired)?;
        let options = socket.options;
        let src = self.datagram_source(id, letter.from, to)?;
        let addresses = Addresses::new(src.addr, to.addr).ok_or(Error::AddressNotAvailable)?;
        let header = header_for(&letter, &options, addresses);
        self.check_size(&options, &header, len)?;
        if matches!(to.addr, IpAddr::V4(dst) if self.net.is_broadcast(dst)) && !options.broadcast {
            return Err(Error::BroadcastNotAllowed);
        }
        let socket = self.sockets.udp_mut(id)?;
        let known = (socket.routed == Some(addresses)).then_some(socket.route);
        let mut cx = self.context(env);
        let Some(payload) = cx
            .fill_chain(len, fill)
            .ok_or(Error::NoBuffers)?
            .complete(len)
        else {
            return Ok(0);
        };
        let mut route = known.unwrap_or(CachedRoute::NONE);
        if to.addr.is_multicast() && options.multicast_loop {
            cx.loop_datagram(header, (src.port, to.port), &payload);
        }
        cx.send_datagram(header, (src.port, to.port), payload, &mut route);
        if let Ok(socket) = self.sockets.udp_mut(id) {
            (socket.route, socket.routed) = (route, Some(addresses));
        }
        self.deliver_loopback(env);
        Ok(len)
    }

    /// Errors: `MessageTooLong` for more than a packet holds, or more than the path takes if
    /// the socket's datagrams are not to be cut.
    fn check_size(&self, options: &Options, header: &IpHeader, len: usize) -> Result<(), Error> {
        let headers = header.len() + UDP_HEADER_BYTES;
        let is_too_long = |mtu: u16| len > usize::from(mtu).saturating_sub(headers);
        let path = self.net.mtu_to(header.addresses.dst());
        match options.dont_fragment && is_too_long(path) || is_too_long(u16::MAX) {
            true => Err(Error::MessageTooLong),
            false => Ok(()),
        }
    }

    /// Gives a socket a port that has none when it meets its first peer. One of IPv6 goes on
    /// hearing both families.
    pub(crate) fn name_datagram(&mut self, id: SocketId, peer: IpAddr) -> Result<(), Error> {
        let local = self.sockets.udp_mut(id)?.local;
        if local.port != 0 {
            return Ok(());
        }
        let family = if local.addr.is_ipv6() {
            local.addr
        } else {
            peer
        };
        self.bind(id, Endpoint::any_of(family))
    }

    /// Binds the socket if it is not, and finds the source for `to`, which may be wished for.
    fn datagram_source(
        &mut self,
        id: SocketId,
        wish: Option<IpAddr>,
        to: Endpoint,
    ) -> Result<Endpoint, Error> {
        if to.port == 0 {
            return Err(Error::InvalidState);
        }
        self.name_datagram(id, to.addr)?;
        let mut src = self.sockets.udp_mut(id)?.local;
        match wish.filter(|wish| !wish.is_unspecified()) {
            Some(wish) if self.net.is_local(wish) => src.addr = wish,
            Some(_) => return Err(Error::InvalidState),
            None if src.addr.is_unspecified() || src.addr.is_multicast() => {
                src.addr = self.net.source_for(to.addr)?;
            }
            None => {}
        }
        Ok(src)
    }
}

fn header_for(letter: &Letter, options: &Options, addresses: Addresses) -> IpHeader {
    let ttl = match addresses.dst().is_multicast() {
        true => options.multicast_ttl,
        false => options.ttl,
    };
    IpHeader {
        addresses,
        protocol: Protocol::Udp,
        hop_limit: letter.hop_limit.unwrap_or(ttl),
        tos: letter.tos.unwrap_or(options.tos),
    }
}

/// Payload that a caller has written, perhaps not to the end.
pub(crate) struct Filled(Chain);

impl Filled {
    /// The payload, if all of it was written.
    fn complete(self, len: usize) -> Option<Chain> {
        (self.0.len() == len).then_some(self.0)
    }
}

impl<E: Env> Context<'_, E> {
    /// Buffers with `len` bytes that `fill` writes; `None` if memory is short.
    fn fill_chain(
        &mut self,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Option<Filled> {
        let mut chain = Chain::new();
        while chain.len() < len {
            let mut buffer = self.buffer()?;
            let room = buffer.tailroom().min(len - chain.len());
            let written = fill(buffer.extend(room)?).min(room);
            buffer.truncate(written);
            chain.push_back(buffer);
            if written < room {
                break;
            }
        }
        Some(Filled(chain))
    }

    /// Lets a group's members on this host hear what the host sends to it.
    fn loop_datagram(&mut self, header: IpHeader, ports: (u16, u16), payload: &Chain) {
        if !self.net.groups.contains(header.addresses.dst()) {
            return;
        }
        let udp = UdpRepr {
            src_port: ports.0,
            dst_port: ports.1,
            payload_len: payload.len() as u16,
        };
        let mut copy = payload.share(0, payload.len());
        if let Some(space) = self.make_room(&mut copy, UDP_HEADER_BYTES) {
            udp.emit(space, 0);
            let len = copy.len();
            if let Some(space) = self.make_room(&mut copy, header.len()) {
                header.emit(space, len);
                self.net.push_loopback(copy);
            }
        }
    }

    pub(crate) fn send_datagram(
        &mut self,
        header: IpHeader,
        (src_port, dst_port): (u16, u16),
        payload: Chain,
        route: &mut CachedRoute,
    ) {
        let udp = UdpRepr {
            src_port,
            dst_port,
            payload_len: payload.len() as u16,
        };
        let dst = header.addresses.dst();
        let total = payload.len() + UDP_HEADER_BYTES;
        let pseudo = header.addresses.pseudo(Protocol::Udp, total as u32);
        // A device sums one frame, so it cannot help with what becomes several.
        let is_one_frame = header.len() + total <= usize::from(self.net.mtu_to(dst));
        let can_sum = self.net.port.is_some_and(|port| port.offloads.checksum);
        let mut offload = Offload::default();
        let sum = if self.net.is_local(dst) {
            0
        } else if can_sum && is_one_frame && !dst.is_multicast() {
            offload.checksum = Some(ChecksumOffload {
                start: header.len() as u16,
                offset: UdpView::CHECKSUM_OFFSET,
            });
            pseudo.partial()
        } else {
            checksum_of(&udp, &payload, pseudo)
        };
        let mut packet = payload;
        let Some(space) = self.make_room(&mut packet, UDP_HEADER_BYTES) else {
            return;
        };
        udp.emit(space, sum);
        self.net.count(Count::UdpOut);
        if dst.is_ipv6() {
            self.net.count6(Snmp6::UdpOutDatagrams);
        }
        self.send_ip_by(header, packet, offload, route);
    }
}

fn checksum_of(udp: &UdpRepr, payload: &Chain, pseudo: Sum) -> u16 {
    let mut bytes = [0; UDP_HEADER_BYTES];
    udp.emit(&mut bytes, 0);
    let sum = payload.slices().fold(pseudo.bytes(&bytes), Sum::bytes);
    match sum.checksum() {
        // Zero means "none"; its other representation means zero.
        0 => 0xffff,
        sum => sum,
    }
}
