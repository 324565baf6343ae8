//! ICMPv6 (RFC 4443): echo, and errors about packets that were sent.
//!
//! Types from 128 on are informational; neighbour discovery (`ndp`) and multicast listener
//! discovery (`mld`) are such messages, so this file reads the type and they the rest.

use core::net::Ipv6Addr;

use crate::bytes::{put, put_u16, put_u32, u8_at, u16_at, u32_at};
use crate::ipv6::next_header;
use crate::{Malformed, Sum};

/// Bytes of a header, the four behind the checksum included.
pub const ICMPV6_HEADER_BYTES: usize = 8;

pub(crate) const UNREACHABLE: u8 = 1;
pub(crate) const PACKET_TOO_BIG: u8 = 2;
pub(crate) const TIME_EXCEEDED: u8 = 3;
pub(crate) const PARAMETER_PROBLEM: u8 = 4;
pub(crate) const ECHO_REQUEST: u8 = 128;
pub(crate) const ECHO_REPLY: u8 = 129;

/// Why a packet did not arrive (RFC 4443 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable6 {
    /// Code 0, and others that mean the same.
    NoRoute,
    /// Codes 1, 5 and 6: somebody forbids it.
    Prohibited,
    /// Code 2.
    BeyondScope,
    /// Code 3.
    Address,
    /// Code 4.
    Port,
}

impl Unreachable6 {
    const fn from_code(code: u8) -> Self {
        match code {
            1 | 5 | 6 => Self::Prohibited,
            2 => Self::BeyondScope,
            3 => Self::Address,
            4 => Self::Port,
            _ => Self::NoRoute,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::NoRoute => 0,
            Self::Prohibited => 1,
            Self::BeyondScope => 2,
            Self::Address => 3,
            Self::Port => 4,
        }
    }
}

/// What is wrong with a packet (RFC 4443 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Code 0, and others that mean the same: a field's value.
    Field,
    /// Code 1: a next header that we do not know.
    NextHeader,
    /// Code 2: an option that we do not know.
    Option,
}

impl Problem {
    const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::NextHeader,
            2 => Self::Option,
            _ => Self::Field,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Field => 0,
            Self::NextHeader => 1,
            Self::Option => 2,
        }
    }
}

/// A message's header; echo data or the offending packet follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Icmpv6Repr {
    /// The packet that follows did not arrive.
    Unreachable(Unreachable6),
    /// The packet that follows is larger than this many bytes, which the next link takes.
    PacketTooBig(u32),
    /// The packet that follows took too many hops.
    HopLimitExceeded,
    /// The rest of the packet whose first piece follows did not come in time.
    ReassemblyTimeExceeded,
    /// The packet that follows has a bad header.
    ParameterProblem {
        /// What is wrong.
        problem: Problem,
        /// Where, from the packet's first byte.
        pointer: u32,
    },
    /// Ping.
    EchoRequest {
        /// Of the asking program.
        ident: u16,
        /// Of the question.
        sequence: u16,
    },
    /// Pong.
    EchoReply {
        /// As asked.
        ident: u16,
        /// As asked.
        sequence: u16,
    },
}

/// A received message whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv6View<'a> {
    bytes: &'a [u8],
}

impl<'a> Icmpv6View<'a> {
    /// Checks a whole message that came from `src` to `dst`.
    pub fn parse(bytes: &'a [u8], src: Ipv6Addr, dst: Ipv6Addr) -> Result<Self, Malformed> {
        if bytes.len() < ICMPV6_HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        let pseudo = Sum::pseudo_v6(src, dst, next_header::ICMPV6, bytes.len() as u32);
        if !pseudo.bytes(bytes).is_valid() {
            return Err(Malformed::Checksum);
        }
        Ok(Self { bytes })
    }

    /// The type's number.
    pub fn kind(&self) -> u8 {
        u8_at(self.bytes, 0)
    }

    /// The code's number.
    pub fn code(&self) -> u8 {
        u8_at(self.bytes, 1)
    }

    /// Whether it reports an error, known or not (RFC 4443 2.1).
    pub fn is_error(&self) -> bool {
        self.kind() < 128
    }

    /// What it says; `None` for what is not echo nor a known error.
    pub fn repr(&self) -> Option<Icmpv6Repr> {
        let (ident, sequence) = (u16_at(self.bytes, 4), u16_at(self.bytes, 6));
        let code = self.code();
        match self.kind() {
            UNREACHABLE => Some(Icmpv6Repr::Unreachable(Unreachable6::from_code(code))),
            PACKET_TOO_BIG => Some(Icmpv6Repr::PacketTooBig(u32_at(self.bytes, 4))),
            TIME_EXCEEDED if code == 1 => Some(Icmpv6Repr::ReassemblyTimeExceeded),
            TIME_EXCEEDED => Some(Icmpv6Repr::HopLimitExceeded),
            PARAMETER_PROBLEM => Some(Icmpv6Repr::ParameterProblem {
                problem: Problem::from_code(code),
                pointer: u32_at(self.bytes, 4),
            }),
            ECHO_REQUEST => Some(Icmpv6Repr::EchoRequest { ident, sequence }),
            ECHO_REPLY => Some(Icmpv6Repr::EchoReply { ident, sequence }),
            _ => None,
        }
    }

    /// The whole message, for `NdpRepr::parse` and its like.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Echo data, or the start of the packet that the message is about.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(ICMPV6_HEADER_BYTES..).unwrap_or_default()
    }
}

impl Icmpv6Repr {
    /// Where the checksum lies.
    pub const CHECKSUM_OFFSET: u16 = 2;

    /// Writes the header but for its checksum, which [`fill_icmpv6_checksum`] writes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let pair = |high, low| u32::from(high) << 16 | u32::from(low);
        let (kind, code, rest) = match *self {
            Self::Unreachable(reason) => (UNREACHABLE, reason.code(), 0),
            Self::PacketTooBig(mtu) => (PACKET_TOO_BIG, 0, mtu),
            Self::HopLimitExceeded => (TIME_EXCEEDED, 0, 0),
            Self::ReassemblyTimeExceeded => (TIME_EXCEEDED, 1, 0),
            Self::ParameterProblem { problem, pointer } => {
                (PARAMETER_PROBLEM, problem.code(), pointer)
            }
            Self::EchoRequest { ident, sequence } => (ECHO_REQUEST, 0, pair(ident, sequence)),
            Self::EchoReply { ident, sequence } => (ECHO_REPLY, 0, pair(ident, sequence)),
        };
        put(bytes, 0, [kind, code, 0, 0]);
        put_u32(bytes, 4, rest);
    }
}

/// Writes the checksum of a whole message whose field is zero.
pub fn fill_icmpv6_checksum(message: &mut [u8], src: Ipv6Addr, dst: Ipv6Addr) {
    let pseudo = Sum::pseudo_v6(src, dst, next_header::ICMPV6, message.len() as u32);
    put_u16(message, 2, pseudo.bytes(message).checksum());
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    #[test]
    fn every_message_reads_as_it_was_written() {
        let reasons = [
            Unreachable6::NoRoute,
            Unreachable6::Prohibited,
            Unreachable6::BeyondScope,
            Unreachable6::Address,
            Unreachable6::Port,
        ];
        let problems = [Problem::Field, Problem::NextHeader, Problem::Option];
        let (ident, sequence, pointer) = (7, 9, 40);
        let messages = reasons
            .into_iter()
            .map(Icmpv6Repr::Unreachable)
            .chain(
                problems
                    .into_iter()
                    .map(|problem| Icmpv6Repr::ParameterProblem { problem, pointer }),
            )
            .chain([
                Icmpv6Repr::PacketTooBig(1280),
                Icmpv6Repr::HopLimitExceeded,
                Icmpv6Repr::ReassemblyTimeExceeded,
                Icmpv6Repr::EchoRequest { ident, sequence },
                Icmpv6Repr::EchoReply { ident, sequence },
            ]);
        for message in messages {
            let mut bytes = *b"--------data";
            message.emit(&mut bytes);
            fill_icmpv6_checksum(&mut bytes, A, B);
            let view = Icmpv6View::parse(&bytes, A, B).expect("a message");
            assert_eq!(view.repr(), Some(message));
            assert_eq!(view.payload(), b"data");
            let elsewhere = Icmpv6View::parse(&bytes, A, Ipv6Addr::LOCALHOST);
            assert_eq!(elsewhere.err(), Some(Malformed::Checksum), "{message:?}");
        }
    }
}
