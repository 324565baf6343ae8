//! ICMP for IPv4: echo, errors about what we sent, errors about what we cannot deliver.

use core::net::IpAddr;

use mbuf::Chain;
use wire::{ICMP_HEADER_BYTES, IcmpRepr, IcmpView, Ipv4View, Protocol, Seq, Unreachable};

use crate::addr::{Addresses, Endpoint, FourTuple};
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::error::Error;
use crate::input::{IpInfo, Refusal};
use crate::ip::IpHeader;
use crate::output::Offload;
use crate::path;
use crate::stack::Stack;

/// Echo data of one reply; the largest that fits one buffer is answered.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1600;

/// RFC 1812 4.3.2.3: errors have 576 bytes at most.
const QUOTE_BYTES_MAX: usize = 576 - 20 - ICMP_HEADER_BYTES;

/// Bytes of a transport's ports and sequence number in a quoted packet.
const QUOTED_PORTS_BYTES: usize = 8;

/// What befell a packet of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It was too large for a link on its way. The link takes so many bytes; zero if the
    /// router does not say.
    TooBig(u32),
    /// It did not arrive; what a program is told.
    Lost(Error),
}

/// What a message says of a packet of ours, and who sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    pub fate: Fate,
    /// Whether it will not get better, so that a program which has named a peer is told unasked.
    pub is_hard: bool,
    /// The message's type and code.
    pub kind: (u8, u8),
    /// What else it says: the size that fits, or where the flaw is.
    pub detail: u32,
    /// How the message came.
    pub info: &'a IpInfo,
}

impl<'a> Report<'a> {
    /// `None` for a message that is no error.
    fn of_v4(message: &IcmpView<'_>, info: &'a IpInfo) -> Option<Self> {
        let (fate, is_hard, detail) = match message.repr()? {
            IcmpRepr::Unreachable(Unreachable::TooBig(mtu)) => {
                (Fate::TooBig(mtu.into()), true, mtu.into())
            }
            IcmpRepr::Unreachable(_) => {
                let (error, is_hard) = unreachable_v4(message.code());
                (Fate::Lost(error), is_hard, 0)
            }
            IcmpRepr::TimeExceeded => (Fate::Lost(Error::HostUnreachable), false, 0),
            IcmpRepr::ParameterProblem { pointer } => {
                (Fate::Lost(Error::Protocol), true, pointer.into())
            }
            // Linux tells nobody whose pieces did not all arrive.
            IcmpRepr::ReassemblyTimeExceeded
            | IcmpRepr::EchoRequest { .. }
            | IcmpRepr::EchoReply { .. } => return None,
        };
        Some(Self {
            fate,
            is_hard,
            kind: (message.kind(), message.code()),
            detail,
            info,
        })
    }
}

/// What Linux tells a program of a destination that cannot be reached (RFC 1122 3.2.2.1), and
/// whether it takes that for final.
const fn unreachable_v4(code: u8) -> (Error, bool) {
    match code {
        0 | 11 => (Error::NetworkUnreachable, false),
        2 => (Error::ProtocolUnreachable, true),
        3 => (Error::ConnectionRefused, true),
        6 | 9 => (Error::NetworkUnreachable, true),
        7 => (Error::HostDown, true),
        8 | 10 | 13..=15 => (Error::HostUnreachable, true),
        _ => (Error::HostUnreachable, false),
    }
}

/// The start of a packet of ours that a message is about.
pub(crate) struct Quoted<'a> {
    pub addresses: Addresses,
    pub protocol: Protocol,
    /// Bytes of the whole packet, as its header says.
    pub total: u16,
    /// What was quoted from the transport's header on.
    pub transport: &'a [u8],
}

impl Stack {
    pub(crate) fn icmp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: Chain,
    ) -> Result<(), DropReason> {
        self.net.count(Count::IcmpIn);
        let Some(packet) = self.context(env).answer_echo(info, packet)? else {
            return Ok(());
        };
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        if packet.len() > bytes.len() {
            return Err(DropReason::Malformed);
        }
        let len = packet.copy_to_slice(0, &mut bytes);
        let message = IcmpView::parse(&bytes[..len])?;
        let report = Report::of_v4(&message, info).ok_or(DropReason::Unexpected)?;
        // The quote is cut short, so its own length says nothing about what is here.
        let header = Ipv4View::parse(message.payload(), usize::from(u16::MAX))?;
        let transport = message.payload().get(header.header().len()..);
        let quoted = Quoted {
            addresses: Addresses::V4 {
                src: header.src(),
                dst: header.dst(),
            },
            protocol: header.protocol(),
            total: header.total_len() as u16,
            transport: transport.unwrap_or_default(),
        };
        self.packet_lost(env, &quoted, &report)
    }

    /// A packet of ours did not arrive; tells the socket that sent it. Only what a socket of
    /// ours can have sent is believed, also about the path.
    pub(crate) fn packet_lost<E: Env>(
        &mut self,
        env: &mut E,
        quoted: &Quoted<'_>,
        report: &Report<'_>,
    ) -> Result<(), DropReason> {
        let transport = quoted.transport;
        let (src, dst) = (quoted.addresses.src(), quoted.addresses.dst());
        if transport.len() < QUOTED_PORTS_BYTES || !self.net.is_local(src) {
            return Err(DropReason::Malformed);
        }
        let port_at = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        let tuple = FourTuple {
            local: Endpoint::new(src, port_at(0)),
            remote: Endpoint::new(dst, port_at(2)),
        };
        let seq = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
        match quoted.protocol {
            Protocol::Tcp => self.tcp_lost(env, &tuple, Seq(seq), quoted.total, report.fate),
            Protocol::Udp => self.udp_lost(env, &tuple, quoted, report),
            _ => Err(DropReason::Unexpected),
        }
    }

    /// Large packets to `dst` vanish though small ones arrive: from now on, and for ten
    /// minutes, packets to it are as small as any path takes (RFC 2923, RFC 8899 5.2).
    pub fn report_black_hole<E: Env>(&mut self, env: &mut E, dst: IpAddr) {
        self.net.count(Count::PathsNarrowed);
        self.net.change_routes();
        self.net.paths.suspect(dst, env.now());
    }
}

impl<E: Env> Context<'_, E> {
    /// Learns that a packet of `sent` bytes to `dst` was too large; returns what the path
    /// takes, news or not, unless such a packet fits.
    pub fn learn_mtu(&mut self, dst: IpAddr, mtu: u32, sent: u16) -> Option<u16> {
        let known = self.net.mtu_to(dst);
        let refusal = path::Refusal { mtu, sent, known };
        self.net.change_upkeep();
        let news = self.net.paths.learn(dst, refusal, self.now);
        if news.is_some() {
            self.net.change_routes();
            self.net.count(Count::PathsNarrowed);
        }
        news.or((known < sent).then_some(known))
    }

    /// Whether one more error may be sent.
    pub fn may_send_error(&mut self) -> bool {
        // As on Linux there is no limit on what we tell ourselves.
        let is_allowed = self.net.is_looped || self.net.icmp_errors.take(&self.net.key, self.now);
        if is_allowed {
            self.net.count(Count::IcmpErrorsOut);
        } else {
            self.net.drop(DropReason::IcmpLimited);
        }
        is_allowed
    }

    /// Tells the sender of a packet, which `headers` and `rest` are, why it went no further.
    pub fn send_refusal(&mut self, info: &IpInfo, refusal: Refusal, headers: &[u8], rest: &Chain) {
        match info.addresses {
            Addresses::V4 { .. } => {
                let reason = match refusal {
                    Refusal::Port => Unreachable::Port,
                    Refusal::Protocol => Unreachable::Protocol,
                };
                self.send_icmp_error(info.addresses, IcmpRepr::Unreachable(reason), headers, rest);
            }
            Addresses::V6 { .. } => self.send_refusal_v6(info, refusal, headers, rest),
        }
    }

    /// Sends an IPv4 error about a packet with `addresses`.
    pub fn send_icmp_error(
        &mut self,
        addresses: Addresses,
        message: IcmpRepr,
        headers: &[u8],
        rest: &Chain,
    ) {
        if addresses.src().is_unspecified() || !self.may_send_error() {
            return;
        }
        let mut bytes = [0; QUOTE_BYTES_MAX];
        let len = rest.copy_to_slice(0, &mut bytes);
        let room = QUOTE_BYTES_MAX.saturating_sub(headers.len());
        let rest = &bytes[..len.min(room)];
        self.send_icmp(addresses.reversed(), message, &[headers, rest]);
    }

    fn send_icmp(&mut self, addresses: Addresses, message: IcmpRepr, payload: &[&[u8]]) {
        let len = payload.iter().map(|part| part.len()).sum::<usize>();
        let buffer = self.buffer();
        let Some(mut buffer) = buffer.filter(|b| b.tailroom() >= ICMP_HEADER_BYTES + len) else {
            self.net.drop(DropReason::NoBuffer);
            return;
        };
        buffer.extend(ICMP_HEADER_BYTES);
        for part in payload {
            buffer.append(part);
        }
        if let Some(bytes) = buffer.bytes_mut() {
            message.emit(bytes);
        }
        let header = IpHeader {
            addresses,
            protocol: Protocol::Icmp,
            hop_limit: self.net.config.hop_limit,
            tos: 0,
        };
        self.send_ip(header, Chain::from(buffer), Offload::default());
    }
}
