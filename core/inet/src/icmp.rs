//! ICMP: echo, errors about what we sent, errors about what we cannot deliver.

use core::net::Ipv4Addr;

use mbuf::Chain;
use wire::{ICMP_HEADER_BYTES, IcmpRepr, IcmpView, Ipv4Repr, Ipv4View, Protocol, Sum, Unreachable};

use crate::addr::{Endpoint, FourTuple};
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::error::Error;
use crate::input::IpInfo;
use crate::output::Offload;
use crate::stack::Stack;

/// Echo data of one reply; the largest that fits one buffer is answered.
const MESSAGE_BYTES_MAX: usize = 1600;

/// Bytes of the smallest IP header and transport ports in a quoted packet.
const QUOTED_PORTS_BYTES: usize = 8;

impl Stack {
    pub(crate) fn icmp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: Chain,
    ) -> Result<(), DropReason> {
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        if packet.len() > bytes.len() {
            return Err(DropReason::Malformed);
        }
        let len = packet.copy_to_slice(0, &mut bytes);
        let message = IcmpView::parse(&bytes[..len])?;
        self.net.count(Count::IcmpIn);
        match message.repr() {
            Some(IcmpRepr::EchoRequest { ident, sequence }) if info.is_unicast => {
                self.net.count(Count::EchoReplies);
                let reply = IcmpRepr::EchoReply { ident, sequence };
                self.context(env)
                    .send_icmp(info.dst, info.src, reply, message.payload());
                Ok(())
            }
            Some(IcmpRepr::Unreachable(reason)) => self.icmp_error(env, reason, message.payload()),
            _ => Err(DropReason::Unexpected),
        }
    }

    /// A packet of ours did not arrive; tells the socket that sent it.
    fn icmp_error<E: Env>(
        &mut self,
        env: &mut E,
        reason: Unreachable,
        quoted: &[u8],
    ) -> Result<(), DropReason> {
        // The quote is cut short, so its own length says nothing about what is here.
        let header = Ipv4View::parse(quoted, usize::from(u16::MAX))?;
        let transport = quoted.get(header.header().len()..).unwrap_or_default();
        if transport.len() < QUOTED_PORTS_BYTES || !self.net.is_local(header.src()) {
            return Err(DropReason::Malformed);
        }
        let port_at = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        let tuple = FourTuple {
            local: Endpoint::v4(header.src(), port_at(0)),
            remote: Endpoint::v4(header.dst(), port_at(2)),
        };
        match header.protocol() {
            Protocol::Tcp => {
                let seq =
                    u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                self.tcp_unreachable(env, &tuple, wire::Seq(seq), reason)
            }
            Protocol::Udp => self.udp_unreachable(env, &tuple, reason),
            _ => Err(DropReason::Unexpected),
        }
    }
}

/// What a program is told.
pub(crate) fn error_of(reason: Unreachable) -> Error {
    match reason {
        Unreachable::Network => Error::NetworkUnreachable,
        Unreachable::Host | Unreachable::Prohibited => Error::HostUnreachable,
        Unreachable::Protocol | Unreachable::Port => Error::ConnectionRefused,
        Unreachable::TooBig(_) => Error::MessageTooLong,
    }
}

impl<E: Env> Context<'_, E> {
    /// Tells the sender of `quoted` why it went no further.
    pub fn send_unreachable(
        &mut self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        reason: Unreachable,
        quoted: &[u8],
    ) {
        // Errors share RFC 5961's limit: both exist to be provoked.
        if to.is_unspecified() || !self.net.may_challenge(self.now) {
            return;
        }
        self.net.count(Count::IcmpErrorsOut);
        self.send_icmp(from, to, IcmpRepr::Unreachable(reason), quoted);
    }

    fn send_icmp(&mut self, src: Ipv4Addr, dst: Ipv4Addr, message: IcmpRepr, payload: &[u8]) {
        let Some(mut buffer) = self.buffer() else {
            self.net.drop(DropReason::NoBuffer);
            return;
        };
        let Some(space) = buffer.extend(ICMP_HEADER_BYTES + payload.len()) else {
            self.net.drop(DropReason::NoBuffer);
            return;
        };
        let (header, data) = space.split_at_mut(ICMP_HEADER_BYTES);
        data.copy_from_slice(payload);
        message.emit(header, Sum::new().bytes(payload));
        let header = Ipv4Repr {
            src,
            dst,
            protocol: Protocol::Icmp,
            payload_len: 0,
            ttl: 64,
            tos: 0,
        };
        self.send_ipv4(header, Chain::from(buffer), Offload::default());
    }
}
