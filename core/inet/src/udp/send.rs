//! What a program sends: where it goes, whether it may, and as how many datagrams.

use core::net::IpAddr;

use mbuf::Chain;
use wire::{IPV4_HEADER_BYTES, Protocol, UDP_HEADER_BYTES};

use super::fill::check_segments;
use super::packet::PacketOptions;
use super::template::Template;
use super::{Destination, SendOptions};
use crate::addr::{Addresses, Endpoint, SocketId};
use crate::context::Context;
use crate::env::Env;
use crate::error::Error;
use crate::ip::IpHeader;
use crate::net::Net;
use crate::options::Options;
use crate::stack::Stack;

/// Where a message goes, and as what.
pub(super) struct Plan {
    pub header: IpHeader,
    /// Ours, the peer's.
    pub ports: (u16, u16),
    /// Members on this host hear it too.
    is_looped: bool,
    /// Cut into datagrams of so many bytes; zero for one.
    pub segment_len: usize,
    pub options: PacketOptions,
    /// It is what the socket's options say.
    is_plain: bool,
}

impl Stack {
    /// Sends a message as [`send_message`](Self::send_message) does, unless an error waits, which
    /// is returned.
    pub fn send_to<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        send: impl Into<SendOptions>,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        match self.sockets.udp_mut(id)?.error.take() {
            Some(error) => Err(error),
            None => self.send_message(env, id, &send.into(), len, fill),
        }
    }

    /// Sends `len` bytes that `fill` writes in order, piece by piece, as one datagram, or as
    /// several if the message or the socket says so. If `fill` writes less than it is offered,
    /// nothing is sent and 0 is returned: the caller's copy failed there.
    pub fn send_message<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        send: &SendOptions,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        self.check_template(env, id, send, len);
        let (socket, now) = (self.sockets.udp_mut(id)?, env.now());
        if let Some(template) = socket.template_for(send, len, &self.net, now) {
            let net = &mut self.net;
            return Context { env, net, now }.send_filled(template, len, fill);
        }
        let plan = self.plan_message(env, id, send, len)?;
        let destination = &mut self.sockets.udp_mut(id)?.destination;
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let is_one = plan.segment_len == 0 || len <= plan.segment_len;
        let is_sent = match is_one {
            true => cx.send_whole(&plan, len, fill, destination)?,
            false => cx.send_segments(&plan, len, fill, destination)?,
        };
        if !is_sent {
            return Ok(0);
        }
        self.remember(id, &plan);
        self.deliver_loopback(env);
        Ok(len)
    }

    /// Sends `payload` as one datagram, without copying it, unless an error waits, which is
    /// returned.
    pub fn send_chain_to<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        send: impl Into<SendOptions>,
        mut payload: Chain,
    ) -> Result<(), Error> {
        if let Some(error) = self.sockets.udp_mut(id)?.error.take() {
            return Err(error);
        }
        let send = SendOptions {
            segment_bytes: Some(0),
            ..send.into()
        };
        self.check_template(env, id, &send, payload.len());
        let (socket, now) = (self.sockets.udp_mut(id)?, env.now());
        if let Some(template) = socket.template_for(&send, payload.len(), &self.net, now) {
            let net = &mut self.net;
            match (Context { env, net, now }).send_by(template, payload) {
                None => return Ok(()),
                Some(back) => payload = back,
            }
        }
        let plan = self.plan_message(env, id, &send, payload.len())?;
        let destination = &mut self.sockets.udp_mut(id)?.destination;
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        cx.post(&plan, payload, destination);
        self.remember(id, &plan);
        self.deliver_loopback(env);
        Ok(())
    }

    /// A plan was carried out: the second one in a row to a peer makes a template.
    fn remember(&mut self, id: SocketId, plan: &Plan) {
        let Ok(socket) = self.sockets.udp_mut(id) else {
            return;
        };
        let to = Endpoint {
            addr: plan.header.addresses.dst(),
            port: plan.ports.1,
        };
        let is_second = socket.last_to == Some(to) && plan.is_plain;
        socket.last_to = Some(to);
        socket.template = match is_second {
            true => Template::of(plan, to, &mut socket.destination, &self.net),
            false => None,
        };
    }

    /// In debug builds, whether the template of a message says what a plan would (Same).
    #[inline]
    fn check_template<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        send: &SendOptions,
        len: usize,
    ) {
        if !cfg!(debug_assertions) {
            return;
        }
        let now = env.now();
        let found = self.sockets.udp_mut(id).ok();
        let found =
            found.and_then(|socket| socket.template_for(send, len, &self.net, now).copied());
        let Some(template) = found else { return };
        let plan = self.plan_message(env, id, send, len);
        let plan = plan.expect("what has a template may be sent");
        let socket = self.sockets.udp_mut(id).expect("it has a template");
        let now_it_is = Template::of(&plan, template.to(), &mut socket.destination, &self.net);
        assert_eq!(now_it_is, Some(template), "a change was forgotten");
    }

    /// Whether a message of `len` bytes could be sent now; the socket has a port then.
    ///
    /// Errors: those of the address and of the length.
    pub fn check_message<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        send: &SendOptions,
        len: usize,
    ) -> Result<(), Error> {
        self.plan_message(env, id, send, len).map(drop)
    }

    /// Decides where a message of `len` bytes goes; nothing has changed yet but that the socket
    /// has a port now.
    ///
    /// Errors: those of the address and of the length.
    fn plan_message<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        send: &SendOptions,
        len: usize,
    ) -> Result<Plan, Error> {
        let to = self.recipient(id, send)?;
        let socket = self.sockets.udp_mut(id)?;
        let (options, known) = (&socket.options, &mut socket.destination);
        self.net.look_up_destination(to.addr, known);
        if !options.device.reaches(to.addr, known.is_local()) {
            return Err(Error::NetworkUnreachable);
        }
        let src = self
            .net
            .datagram_source(send.from, socket.local.addr, known)?;
        let addresses = Addresses::new(src, to.addr).ok_or(Error::AddressNotAvailable)?;
        let segment_bytes = send.segment_bytes.unwrap_or(options.segment_bytes);
        let plan = Plan {
            header: header_for(send, options, addresses),
            ports: (socket.local.port, to.port),
            is_looped: to.addr.is_multicast() && options.multicast_loop,
            segment_len: usize::from(segment_bytes),
            options: PacketOptions::from(options),
            is_plain: send.has_nothing_of_its_own(),
        };
        let may_go = !known.is_broadcast() || options.broadcast;
        let fits = plan.check_size(known.mtu(plan.options), len);
        if fits == Err(Error::MessageTooLong) {
            self.note_too_long(env, id, to, len)?;
        }
        fits?;
        match may_go {
            true => Ok(plan),
            false => Err(Error::BroadcastNotAllowed),
        }
    }

    /// Who gets a message; the socket has a port then.
    fn recipient(&mut self, id: SocketId, send: &SendOptions) -> Result<Endpoint, Error> {
        let socket = self.sockets.udp_mut(id)?;
        let to = send.to.or(socket.peer).ok_or(Error::DestinationRequired)?;
        if socket.is_write_shut {
            return Err(Error::BrokenPipe);
        }
        if to.port == 0 {
            return Err(Error::InvalidState);
        }
        if socket.local.port == 0 {
            self.name_datagram(id, to.addr)?;
        }
        Ok(to)
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
}

impl Net {
    /// The source of a datagram, which may be wished for, of a socket that is bound to `bound`.
    ///
    /// Errors: `InvalidState` for an address that is not ours; those of a destination that
    /// cannot be reached.
    #[inline]
    fn datagram_source(
        &self,
        wish: Option<IpAddr>,
        bound: IpAddr,
        destination: &Destination,
    ) -> Result<IpAddr, Error> {
        match wish.filter(|wish| !wish.is_unspecified()) {
            Some(wish) if self.is_local(wish) => Ok(wish),
            Some(_) => Err(Error::InvalidState),
            None if bound.is_unspecified() || bound.is_multicast() => destination.source(),
            None => Ok(bound),
        }
    }
}

impl Plan {
    /// Whether `len` bytes may go by a path that takes packets of `mtu` bytes.
    ///
    /// Errors: `MessageTooLong` for more than a packet holds, or more than the path takes if
    /// the socket's datagrams are not to be cut; `InvalidState` for segments that do not fit.
    fn check_size(&self, mtu: u16, len: usize) -> Result<(), Error> {
        let headers = self.header.len() + UDP_HEADER_BYTES;
        let path = usize::from(mtu).saturating_sub(headers);
        let dst = self.header.addresses.dst();
        let is_whole = self.options.is_whole_v6 && dst.is_ipv6();
        let refuses = self.options.path_discovery.refuses() || is_whole;
        let most = match refuses && self.segment_len == 0 {
            true => path,
            false => datagram_bytes_max(dst),
        };
        match len > most {
            true => Err(Error::MessageTooLong),
            false => check_segments(len, self.segment_len, path),
        }
    }
}

/// Bytes of a datagram to `dst` at most, however many packets it takes. IPv4 counts its header
/// among a packet's 65,535 bytes, IPv6 does not.
const fn datagram_bytes_max(dst: IpAddr) -> usize {
    match dst {
        IpAddr::V4(_) => u16::MAX as usize - IPV4_HEADER_BYTES - UDP_HEADER_BYTES,
        IpAddr::V6(_) => u16::MAX as usize - UDP_HEADER_BYTES,
    }
}

fn header_for(send: &SendOptions, options: &Options, addresses: Addresses) -> IpHeader {
    let ttl = match addresses.dst().is_multicast() {
        true => options.multicast_ttl,
        false => options.ttl,
    };
    IpHeader {
        addresses,
        protocol: Protocol::Udp,
        hop_limit: send.hop_limit.unwrap_or(ttl),
        tos: send.tos.unwrap_or(options.tos),
    }
}

impl<E: Env> Context<'_, E> {
    /// Sends a message behind headers that hold for it, as [`Stack::send_message`] does.
    #[inline]
    fn send_filled(
        &mut self,
        template: &Template,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        let Some(payload) = self.fill_chain(len, fill)? else {
            return Ok(0);
        };
        match self.send_by(template, payload) {
            None => Ok(len),
            // A fresh buffer has room for headers.
            Some(_) => Err(Error::NoBuffers),
        }
    }

    /// Sends a message as one datagram; false if `fill` failed.
    fn send_whole(
        &mut self,
        plan: &Plan,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
        destination: &mut Destination,
    ) -> Result<bool, Error> {
        let Some(payload) = self.fill_chain(len, fill)? else {
            return Ok(false);
        };
        self.post(plan, payload, destination);
        Ok(true)
    }

    /// Sends a message as datagrams of the plan's size, if all of it could be had; false if
    /// `fill` failed.
    fn send_segments(
        &mut self,
        plan: &Plan,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
        destination: &mut Destination,
    ) -> Result<bool, Error> {
        let Some(pieces) = self.fill_segments(len, plan.segment_len, fill)? else {
            return Ok(false);
        };
        for piece in pieces {
            self.post(plan, piece, destination);
        }
        Ok(true)
    }

    /// Sends one datagram, to members of its group on this host too.
    fn post(&mut self, plan: &Plan, payload: Chain, destination: &mut Destination) {
        if plan.is_looped {
            self.loop_datagram(plan.header, plan.ports, &payload);
        }
        self.send_datagram(plan.header, plan.ports, payload, plan.options, destination);
    }
}
