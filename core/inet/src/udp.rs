//! Datagram sockets.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use mbuf::{Chain, ChecksumOffload};
use wire::{
    IPV4_HEADER_BYTES, Ipv4Repr, Protocol, Sum, UDP_HEADER_BYTES, UdpRepr, UdpView, Unreachable,
};

use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::{Env, Events};
use crate::error::Error;
use crate::icmp::error_of;
use crate::input::IpInfo;
use crate::options::Options;
use crate::output::Offload;
use crate::stack::Stack;
use crate::table::Socket;

/// A received datagram.
#[derive(Debug)]
pub struct Datagram {
    /// Who sent it.
    pub from: Endpoint,
    /// Which of our addresses it was sent to.
    pub to: Endpoint,
    /// Its bytes.
    pub payload: Chain,
}

/// A datagram socket.
pub(crate) struct UdpSocket {
    pub id: SocketId,
    /// Port zero: not bound.
    pub local: Endpoint,
    pub peer: Option<Endpoint>,
    pub options: Options,
    pub error: Option<Error>,
    pub is_read_shut: bool,
    queue: VecDeque<Datagram>,
    queued_bytes: usize,
}

impl UdpSocket {
    pub fn new(id: SocketId) -> Self {
        Self {
            id,
            local: Endpoint::ANY,
            peer: None,
            options: Options::default(),
            error: None,
            is_read_shut: false,
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
    pub(crate) fn udp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        mut packet: Chain,
    ) -> Result<(), DropReason> {
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = UdpView::parse(bytes, packet.len())?;
        let from = Endpoint::v4(info.src, header.src_port());
        let to = Endpoint::v4(info.dst, header.dst_port());
        let (len, has_checksum) = (header.len(), header.has_checksum());
        packet.truncate(len);
        if has_checksum && !info.verify(Protocol::Udp, &packet) {
            return Err(DropReason::BadChecksum);
        }
        packet.advance(UDP_HEADER_BYTES);
        if self.dhcp_input(env, from, to, &packet) {
            return Ok(());
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
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        self.net.stats.counts.count(Count::UdpIn);
        socket.push(Datagram {
            from,
            to,
            payload: packet,
        })?;
        env.wake(socket.id, Events::READABLE);
        Ok(())
    }

    pub(crate) fn udp_unreachable<E: Env>(
        &mut self,
        env: &mut E,
        tuple: &FourTuple,
        reason: Unreachable,
    ) -> Result<(), DropReason> {
        let index = self
            .net
            .demux
            .udp
            .find(tuple.local, tuple.remote, || 0)
            .ok_or(DropReason::NoSocket)?;
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        // Like Linux: a socket without a peer could not tell which datagram it was.
        if socket.peer == Some(tuple.remote) {
            socket.error = Some(error_of(reason));
            env.wake(
                socket.id,
                Events::READABLE | Events::WRITABLE | Events::ERROR,
            );
        }
        Ok(())
    }

    /// Sends a datagram of `len` bytes that `fill` writes in order, piece by piece. To the
    /// peer if `to` is `None`. If `fill` writes less than it is offered, nothing is sent and
    /// the bytes written so far are returned: the caller's copy failed there.
    pub fn send_to<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        to: Option<Endpoint>,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        let socket = self.sockets.udp_mut(id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let to = to.or(socket.peer).ok_or(Error::DestinationRequired)?;
        let options = socket.options;
        let (src, dst) = self.datagram_path(id, to)?;
        if len > usize::from(self.net.mtu_to(dst)) - IPV4_HEADER_BYTES - UDP_HEADER_BYTES {
            return Err(Error::MessageTooLong);
        }
        if self.net.is_broadcast(dst) && !options.broadcast {
            return Err(Error::BroadcastNotAllowed);
        }
        let IpAddr::V4(src_addr) = src.addr else {
            return Err(Error::AddressNotAvailable);
        };
        let mut cx = self.context(env);
        let Some(payload) = cx
            .fill_chain(len, fill)
            .ok_or(Error::NoBuffers)?
            .complete(len)
        else {
            return Ok(0);
        };
        let header = Ipv4Repr {
            src: src_addr,
            dst,
            protocol: Protocol::Udp,
            payload_len: 0,
            ttl: options.ttl,
            tos: options.tos,
        };
        cx.send_datagram(header, src.port, to.port, payload);
        self.deliver_loopback(env);
        Ok(len)
    }

    /// Binds the socket if it is not, and finds the source for `to`.
    fn datagram_path(
        &mut self,
        id: SocketId,
        to: Endpoint,
    ) -> Result<(Endpoint, core::net::Ipv4Addr), Error> {
        let IpAddr::V4(dst) = to.addr else {
            return Err(Error::NetworkUnreachable);
        };
        if to.port == 0 {
            return Err(Error::InvalidState);
        }
        if self.sockets.udp_mut(id)?.local.port == 0 {
            self.bind(id, Endpoint::ANY)?;
        }
        let mut src = self.sockets.udp_mut(id)?.local;
        if src.addr.is_unspecified() || src.addr.is_multicast() {
            src.addr = IpAddr::V4(self.net.source_for(dst)?);
        }
        Ok((src, dst))
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

    pub(crate) fn send_datagram(
        &mut self,
        header: Ipv4Repr,
        src_port: u16,
        dst_port: u16,
        payload: Chain,
    ) {
        let udp = UdpRepr {
            src_port,
            dst_port,
            payload_len: payload.len() as u16,
        };
        let total = (payload.len() + UDP_HEADER_BYTES) as u32;
        let pseudo = Sum::pseudo_v4(header.src, header.dst, Protocol::Udp, total);
        let is_offloaded = self.net.port.is_some_and(|port| port.offloads.checksum);
        let mut offload = Offload::default();
        let sum = if self.net.is_local(header.dst) {
            0
        } else if is_offloaded {
            offload.checksum = Some(ChecksumOffload {
                start: IPV4_HEADER_BYTES as u16,
                offset: UdpView::CHECKSUM_OFFSET,
            });
            pseudo.partial()
        } else {
            let mut bytes = [0; UDP_HEADER_BYTES];
            udp.emit(&mut bytes, 0);
            match payload
                .slices()
                .fold(pseudo.bytes(&bytes), Sum::bytes)
                .checksum()
            {
                // Zero means "none"; its other representation means zero.
                0 => 0xffff,
                sum => sum,
            }
        };
        let mut packet = payload;
        let Some(space) = self.make_room(&mut packet, UDP_HEADER_BYTES) else {
            return;
        };
        udp.emit(space, sum);
        self.net.count(Count::UdpOut);
        self.send_ipv4(header, packet, offload);
    }
}
