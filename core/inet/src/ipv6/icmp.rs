//! ICMPv6 (RFC 4443): echo, errors about what we sent, errors about what we cannot deliver.

use core::net::IpAddr;

use mbuf::Chain;
use wire::{
    EXTENSION_BYTES_MAX, ExtensionFault, Extensions, ICMPV6_HEADER_BYTES, IPV6_HEADER_BYTES,
    IPV6_MTU_MIN, Icmpv6Repr, Icmpv6View, Ipv6View, Malformed, MldQuery, Problem, Protocol,
    Unreachable6, fill_icmpv6_checksum, is_mld_report, next_header,
};

use super::listener::on_query;
use crate::addr::Addresses;
use crate::context::Context;
use crate::counters::DropReason;
use crate::counters6::Snmp6;
use crate::env::Env;
use crate::error::Error;
use crate::icmp::{Fate, MESSAGE_BYTES_MAX, Quoted, Report};
use crate::input::{IpInfo, Refusal};
use crate::ip::IpHeader;
use crate::output::Offload;
use crate::stack::Stack;

/// RFC 4443 2.4 (c): as much of the packet as fits into the smallest path.
const QUOTE_BYTES_MAX: usize = IPV6_MTU_MIN as usize - IPV6_HEADER_BYTES - ICMPV6_HEADER_BYTES;

impl Stack {
    pub(crate) fn icmpv6_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: Chain,
    ) -> Result<(), DropReason> {
        self.net.count6(Snmp6::IcmpInMsgs);
        let result = self.try_icmpv6_input(env, info, packet);
        match result {
            Err(DropReason::BadChecksum) => {
                self.net.count6(Snmp6::IcmpInCsumErrors);
                self.net.count6(Snmp6::IcmpInErrors);
            }
            Err(_) => self.net.count6(Snmp6::IcmpInErrors),
            Ok(()) => {}
        }
        result
    }

    fn try_icmpv6_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: Chain,
    ) -> Result<(), DropReason> {
        let Some(packet) = self.context(env).answer_echo(info, packet)? else {
            return Ok(());
        };
        // Most messages are discovery's.
        self.net.change_upkeep();
        let Addresses::V6 { src, dst } = info.addresses else {
            return Err(DropReason::Malformed);
        };
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        if packet.len() > bytes.len() {
            return Err(DropReason::Malformed);
        }
        let len = packet.copy_to_slice(0, &mut bytes);
        let message = Icmpv6View::parse(&bytes[..len], src, dst)?;
        if let Some(counter) = Snmp6::icmp_in(message.kind()) {
            self.net.count6(counter);
        }
        if self.context(env).discovery_input(info, &message)? {
            return Ok(());
        }
        if let Some(query) = MldQuery::parse(&message) {
            return on_query(&mut self.net, env, info, &query);
        }
        match message.repr() {
            Some(repr) if message.is_error() => {
                let report = report_of(&message, repr, info).ok_or(DropReason::Unexpected)?;
                self.icmpv6_error(env, &report, message.payload())
            }
            // Other listeners speak for themselves.
            _ if is_mld_report(&message) => Ok(()),
            _ => Err(DropReason::Unexpected),
        }
    }

    /// A packet of ours did not arrive.
    fn icmpv6_error<E: Env>(
        &mut self,
        env: &mut E,
        report: &Report<'_>,
        quoted: &[u8],
    ) -> Result<(), DropReason> {
        // The quote is cut short, so its own length says nothing about what is here.
        let header = Ipv6View::parse(quoted, usize::MAX)?;
        let behind = quoted.get(IPV6_HEADER_BYTES..).unwrap_or_default();
        let chain = Extensions::parse(behind, header.next_header());
        let chain = chain.map_err(|_| Malformed::Truncated)?;
        if chain.fragment.is_some_and(|piece| piece.offset > 0) {
            return Err(DropReason::Unexpected);
        }
        let upper = match chain.fragment {
            Some(piece) if !piece.is_atomic() => piece.next_header,
            _ => chain.upper,
        };
        let total = IPV6_HEADER_BYTES + usize::from(header.payload_len());
        let quoted = Quoted {
            addresses: Addresses::V6 {
                src: header.src(),
                dst: header.dst(),
            },
            protocol: Protocol::from_number(upper),
            total: total.min(usize::from(u16::MAX)) as u16,
            transport: behind.get(chain.len..).unwrap_or_default(),
        };
        self.packet_lost(env, &quoted, report)
    }
}

/// What Linux tells a program of an error, and whether it takes that for final; `None` for a
/// message that is no error.
fn report_of<'a>(
    message: &Icmpv6View<'_>,
    repr: Icmpv6Repr,
    info: &'a IpInfo,
) -> Option<Report<'a>> {
    let (fate, is_hard, detail) = match repr {
        Icmpv6Repr::PacketTooBig(mtu) => (Fate::TooBig(mtu), true, mtu),
        Icmpv6Repr::Unreachable(reason) => {
            let (error, is_hard) = unreachable_v6(reason);
            (Fate::Lost(error), is_hard, 0)
        }
        Icmpv6Repr::HopLimitExceeded | Icmpv6Repr::ReassemblyTimeExceeded => {
            (Fate::Lost(Error::HostUnreachable), false, 0)
        }
        Icmpv6Repr::ParameterProblem { pointer, .. } => {
            (Fate::Lost(Error::Protocol), true, pointer)
        }
        Icmpv6Repr::EchoRequest { .. } | Icmpv6Repr::EchoReply { .. } => return None,
    };
    Some(Report {
        fate,
        is_hard,
        kind: (message.kind(), message.code()),
        detail,
        info,
    })
}

const fn unreachable_v6(reason: Unreachable6) -> (Error, bool) {
    match reason {
        Unreachable6::NoRoute => (Error::NetworkUnreachable, false),
        Unreachable6::Prohibited => (Error::Prohibited, true),
        Unreachable6::BeyondScope | Unreachable6::Address => (Error::HostUnreachable, false),
        Unreachable6::Port => (Error::ConnectionRefused, true),
    }
}

impl<E: Env> Context<'_, E> {
    pub fn send_refusal_v6(
        &mut self,
        info: &IpInfo,
        refusal: Refusal,
        headers: &[u8],
        rest: &Chain,
    ) {
        let message = match refusal {
            Refusal::Port => Icmpv6Repr::Unreachable(Unreachable6::Port),
            Refusal::Protocol => Icmpv6Repr::ParameterProblem {
                problem: Problem::NextHeader,
                pointer: info.protocol_at,
            },
        };
        self.send_icmpv6_error(info.addresses, message, headers, rest);
    }

    /// Tells the sender of a packet, which `headers` and `rest` are, what is wrong with its
    /// extension headers, where RFC 8200 asks for that.
    pub(super) fn send_extension_fault(
        &mut self,
        addresses: Addresses,
        fault: ExtensionFault,
        rest: &Chain,
    ) {
        let is_multicast = addresses.dst().is_multicast();
        let (problem, pointer) = match fault {
            ExtensionFault::BadField(at) if !is_multicast => (Problem::Field, at),
            ExtensionFault::UnknownHeader(at) if !is_multicast => (Problem::NextHeader, at),
            ExtensionFault::UnknownOption {
                at,
                tell_for_multicast,
            } if !is_multicast || tell_for_multicast => (Problem::Option, at),
            _ => return,
        };
        let message = Icmpv6Repr::ParameterProblem { problem, pointer };
        self.send_icmpv6_error(addresses, message, &[], rest);
    }

    /// Sends an error about a packet with `addresses` to its sender.
    pub fn send_icmpv6_error(
        &mut self,
        addresses: Addresses,
        message: Icmpv6Repr,
        headers: &[u8],
        rest: &Chain,
    ) {
        let Addresses::V6 { src, dst } = addresses else {
            return;
        };
        if src.is_unspecified() || src.is_multicast() || !self.may_send_error() {
            return;
        }
        let own = match dst.is_multicast() {
            true => self.net.source_for(IpAddr::V6(src)).ok(),
            false => Some(IpAddr::V6(dst)),
        };
        let Some(back) = own.and_then(|own| Addresses::new(own, IpAddr::V6(src))) else {
            return;
        };
        let mut bytes = [0; QUOTE_BYTES_MAX];
        let len = rest.copy_to_slice(0, &mut bytes);
        let room = QUOTE_BYTES_MAX.saturating_sub(headers.len());
        let rest = &bytes[..len.min(room)];
        self.send_icmpv6(back, message, &[headers, rest]);
    }

    fn send_icmpv6(&mut self, addresses: Addresses, message: Icmpv6Repr, payload: &[&[u8]]) {
        let mut bytes = [0; ICMPV6_HEADER_BYTES + MESSAGE_BYTES_MAX];
        let mut len = ICMPV6_HEADER_BYTES;
        for part in payload {
            let room = (bytes.len() - len).min(part.len());
            bytes[len..len + room].copy_from_slice(&part[..room]);
            len += room;
        }
        message.emit(&mut bytes);
        let header = IpHeader {
            addresses,
            protocol: Protocol::Other(next_header::ICMPV6),
            hop_limit: self.net.config.hop_limit_v6,
            tos: 0,
        };
        if let Some(packet) = self.icmpv6_message(&header, &mut bytes[..len]) {
            self.send_ip(header, packet, Offload::default());
        }
    }

    /// Completes and counts a message, and puts it into a buffer.
    pub(super) fn icmpv6_message(&mut self, header: &IpHeader, bytes: &mut [u8]) -> Option<Chain> {
        let Addresses::V6 { src, dst } = header.addresses else {
            return None;
        };
        fill_icmpv6_checksum(bytes, src, dst);
        let buffer = self.buffer();
        let Some(mut buffer) = buffer.filter(|buffer| buffer.tailroom() >= bytes.len()) else {
            self.net.drop(DropReason::NoBuffer);
            self.net.count6(Snmp6::IcmpOutErrors);
            return None;
        };
        buffer.append(bytes);
        self.net.count6(Snmp6::IcmpOutMsgs);
        if let Some(counter) = bytes.first().and_then(|kind| Snmp6::icmp_out(*kind)) {
            self.net.count6(counter);
        }
        Some(Chain::from(buffer))
    }
}

const _: () = assert!(
    QUOTE_BYTES_MAX >= IPV6_HEADER_BYTES + EXTENSION_BYTES_MAX,
    "a quote holds all headers"
);
