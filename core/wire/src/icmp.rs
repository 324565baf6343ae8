//! ICMP for IPv4 (RFC 792): echo, and errors about packets that were sent.

use crate::bytes::{put, put_u16, put_u32, u8_at, u16_at};
use crate::{Malformed, Sum};

/// Bytes of a header.
pub const ICMP_HEADER_BYTES: usize = 8;

pub(crate) const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
pub(crate) const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// Code 0, and others that mean the same.
    Network,
    /// Code 1.
    Host,
    /// Code 2.
    Protocol,
    /// Code 3.
    Port,
    /// Code 4: the next link takes packets of at most this size (zero: unknown; RFC 1191).
    TooBig(u16),
    /// Codes 9, 10 and 13.
    Prohibited,
}

impl Unreachable {
    fn from_code(code: u8, mtu: u16) -> Self {
        match code {
            1 | 7 | 12 => Self::Host,
            2 => Self::Protocol,
            3 => Self::Port,
            4 => Self::TooBig(mtu),
            9 | 10 | 13 => Self::Prohibited,
            _ => Self::Network,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Network => 0,
            Self::Host => 1,
            Self::Protocol => 2,
            Self::Port => 3,
            Self::TooBig(_) => 4,
            Self::Prohibited => 13,
        }
    }
}

/// A message's header; echo data or the offending packet follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpRepr {
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
    /// The packet that follows did not arrive.
    Unreachable(Unreachable),
    /// The packet that follows took too many hops.
    TimeExceeded,
    /// The rest of the packet whose first piece follows did not come in time.
    ReassemblyTimeExceeded,
    /// The packet that follows has a bad header.
    ParameterProblem {
        /// Where, from the packet's first byte.
        pointer: u8,
    },
}

/// A received message whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct IcmpView<'a> {
    bytes: &'a [u8],
}

impl<'a> IcmpView<'a> {
    /// Checks a whole message.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < ICMP_HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        if !Sum::new().bytes(bytes).is_valid() {
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

    /// What it says; `None` for types that are obsolete or not for hosts.
    pub fn repr(&self) -> Option<IcmpRepr> {
        let (ident, sequence) = (u16_at(self.bytes, 4), u16_at(self.bytes, 6));
        match self.kind() {
            ECHO_REQUEST => Some(IcmpRepr::EchoRequest { ident, sequence }),
            ECHO_REPLY => Some(IcmpRepr::EchoReply { ident, sequence }),
            UNREACHABLE => {
                let reason = Unreachable::from_code(self.code(), sequence);
                Some(IcmpRepr::Unreachable(reason))
            }
            TIME_EXCEEDED if self.code() == 1 => Some(IcmpRepr::ReassemblyTimeExceeded),
            TIME_EXCEEDED => Some(IcmpRepr::TimeExceeded),
            PARAMETER_PROBLEM => Some(IcmpRepr::ParameterProblem {
                pointer: u8_at(self.bytes, 4),
            }),
            _ => None,
        }
    }

    /// Echo data, or the start of the packet that the message is about.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(ICMP_HEADER_BYTES..).unwrap_or_default()
    }
}

impl IcmpRepr {
    /// Writes the header of a whole message, whose payload is already in its place.
    pub fn emit(&self, message: &mut [u8]) {
        let Some(header) = message.first_chunk_mut::<ICMP_HEADER_BYTES>() else {
            return;
        };
        let (kind, code, rest) = match *self {
            Self::EchoRequest { ident, sequence } => (ECHO_REQUEST, 0, pair(ident, sequence)),
            Self::EchoReply { ident, sequence } => (ECHO_REPLY, 0, pair(ident, sequence)),
            Self::Unreachable(Unreachable::TooBig(mtu)) => (UNREACHABLE, 4, u32::from(mtu)),
            Self::Unreachable(reason) => (UNREACHABLE, reason.code(), 0),
            Self::TimeExceeded => (TIME_EXCEEDED, 0, 0),
            Self::ReassemblyTimeExceeded => (TIME_EXCEEDED, 1, 0),
            Self::ParameterProblem { pointer } => (PARAMETER_PROBLEM, 0, u32::from(pointer) << 24),
        };
        put(header, 0, [kind, code, 0, 0]);
        put_u32(header, 4, rest);
        put_u16(message, 2, Sum::new().bytes(message).checksum());
    }
}

fn pair(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}
