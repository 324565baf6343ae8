//! Options of neighbour discovery (RFC 4861 4.6; nonce: RFC 3971 5.3.2; route information:
//! RFC 4191 2.3 is passed over).
//!
//! Each is a type, a length in units of eight bytes, and that much less two bytes. A
//! length of zero spoils the whole message; unknown types are passed over.

use core::net::Ipv6Addr;

use crate::bytes::{array, ipv6_at, put, put_u32, u8_at, u32_at};
use crate::{MacAddr, Malformed};

/// Options that are looked at in one message; more spoil it.
pub const NDP_OPTIONS_MAX: usize = 32;

const SOURCE_LINK: u8 = 1;
const TARGET_LINK: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const NONCE: u8 = 14;

/// Bytes of an option with a MAC address or a nonce.
pub(crate) const SMALL_OPTION_BYTES: usize = 8;
const PREFIX_OPTION_BYTES: usize = 32;

const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;

/// A prefix that a router announces (RFC 4861 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInfo {
    /// The first `prefix_len` bits count.
    pub prefix: Ipv6Addr,
    /// At most 128.
    pub prefix_len: u8,
    /// Its addresses are neighbours.
    pub is_on_link: bool,
    /// Hosts may make themselves addresses of it.
    pub is_autonomous: bool,
    /// Seconds; all ones for ever.
    pub valid_secs: u32,
    /// Seconds; all ones for ever.
    pub preferred_secs: u32,
}

impl PrefixInfo {
    fn parse(body: &[u8]) -> Option<Self> {
        let prefix_len = u8_at(body, 2);
        (body.len() == PREFIX_OPTION_BYTES && prefix_len <= 128).then(|| Self {
            prefix: ipv6_at(body, 16),
            prefix_len,
            is_on_link: u8_at(body, 3) & ON_LINK != 0,
            is_autonomous: u8_at(body, 3) & AUTONOMOUS != 0,
            valid_secs: u32_at(body, 4),
            preferred_secs: u32_at(body, 8),
        })
    }

    fn emit(&self, bytes: &mut [u8]) {
        let on_link = if self.is_on_link { ON_LINK } else { 0 };
        let autonomous = if self.is_autonomous { AUTONOMOUS } else { 0 };
        let flags = on_link | autonomous;
        put(bytes, 0, [PREFIX, 4, self.prefix_len, flags]);
        put_u32(bytes, 4, self.valid_secs);
        put_u32(bytes, 8, self.preferred_secs);
        put(bytes, 16, self.prefix.octets());
    }
}

/// One option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpOption {
    /// The sender's station.
    SourceLink(MacAddr),
    /// The target's station.
    TargetLink(MacAddr),
    /// A prefix of the link.
    Prefix(PrefixInfo),
    /// Largest packet that every station takes, in bytes.
    Mtu(u32),
    /// Tells our own questions from others' when they come back (RFC 7527).
    Nonce([u8; 6]),
}

impl NdpOption {
    /// Bytes that it takes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Prefix(_) => PREFIX_OPTION_BYTES,
            _ => SMALL_OPTION_BYTES,
        }
    }

    /// No option is empty.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes [`len`](Self::len) bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        match self {
            Self::SourceLink(mac) => emit_small(bytes, SOURCE_LINK, mac.0),
            Self::TargetLink(mac) => emit_small(bytes, TARGET_LINK, mac.0),
            Self::Prefix(info) => info.emit(bytes),
            Self::Mtu(mtu) => {
                put(bytes, 0, [MTU, 1, 0, 0]);
                put_u32(bytes, 4, *mtu);
            }
            Self::Nonce(nonce) => emit_small(bytes, NONCE, *nonce),
        }
    }

    fn parse(kind: u8, body: &[u8]) -> Option<Self> {
        let is_small = body.len() == SMALL_OPTION_BYTES;
        match kind {
            SOURCE_LINK if is_small => Some(Self::SourceLink(MacAddr(array(body, 2)))),
            TARGET_LINK if is_small => Some(Self::TargetLink(MacAddr(array(body, 2)))),
            PREFIX => PrefixInfo::parse(body).map(Self::Prefix),
            MTU if is_small => Some(Self::Mtu(u32_at(body, 4))),
            NONCE if is_small => Some(Self::Nonce(array(body, 2))),
            _ => None,
        }
    }
}

fn emit_small(bytes: &mut [u8], kind: u8, body: [u8; 6]) {
    put(bytes, 0, [kind, 1]);
    put(bytes, 2, body);
}

/// The options of a message, whose lengths were checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NdpOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> NdpOptions<'a> {
    /// None.
    pub const EMPTY: Self = Self { bytes: &[] };

    /// Checks that `bytes` are options and nothing else.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        for _ in 0..=NDP_OPTIONS_MAX {
            if rest.is_empty() {
                return Ok(Self { bytes });
            }
            let len = usize::from(u8_at(rest, 1)) * 8;
            if len == 0 || rest.len() < len {
                return Err(Malformed::Length);
            }
            rest = &rest[len..];
        }
        Err(Malformed::Length)
    }

    /// Those that we know, in order.
    pub fn iter(&self) -> impl Iterator<Item = NdpOption> + 'a {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            while !rest.is_empty() {
                let len = (usize::from(u8_at(rest, 1)) * 8).clamp(1, rest.len());
                let (body, behind) = rest.split_at(len);
                rest = behind;
                if let Some(option) = NdpOption::parse(u8_at(body, 0), body) {
                    return Some(option);
                }
            }
            None
        })
    }

    /// The sender's station, if it says.
    pub fn source_link(&self) -> Option<MacAddr> {
        self.iter().find_map(|option| match option {
            NdpOption::SourceLink(mac) => Some(mac),
            _ => None,
        })
    }

    /// The target's station, if it is said.
    pub fn target_link(&self) -> Option<MacAddr> {
        self.iter().find_map(|option| match option {
            NdpOption::TargetLink(mac) => Some(mac),
            _ => None,
        })
    }

    /// The nonce, if there is one.
    pub fn nonce(&self) -> Option<[u8; 6]> {
        self.iter().find_map(|option| match option {
            NdpOption::Nonce(nonce) => Some(nonce),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_as_they_were_written() {
        let options = [
            NdpOption::SourceLink(MacAddr([2, 0, 0, 0, 0, 1])),
            NdpOption::TargetLink(MacAddr([2, 0, 0, 0, 0, 2])),
            NdpOption::Mtu(1400),
            NdpOption::Nonce([1, 2, 3, 4, 5, 6]),
            NdpOption::Prefix(PrefixInfo {
                prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
                prefix_len: 64,
                is_on_link: true,
                is_autonomous: false,
                valid_secs: u32::MAX,
                preferred_secs: 1800,
            }),
        ];
        let mut bytes = [0; 64];
        let mut at = 0;
        for option in options {
            option.emit(&mut bytes[at..]);
            at += option.len();
        }
        let read = NdpOptions::parse(&bytes).expect("options");
        assert!(read.iter().eq(options));
    }

    #[test]
    fn an_empty_option_and_one_too_many_spoil_the_message() {
        assert!(NdpOptions::parse(&[1, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(NdpOptions::parse(&[1, 2, 0, 0, 0, 0, 0, 0]).is_err());
        let many = [[99, 1, 0, 0, 0, 0, 0, 0]; NDP_OPTIONS_MAX + 1].concat();
        assert!(NdpOptions::parse(&many).is_err());
        let unknown = NdpOptions::parse(&many[8..]).expect("as many as may be");
        assert_eq!(unknown.iter().count(), 0);
    }

    #[test]
    fn a_prefix_longer_than_an_address_is_passed_over() {
        let mut bytes = [0; 32];
        put(&mut bytes, 0, [PREFIX, 4, 129, 0xc0]);
        let options = NdpOptions::parse(&bytes).expect("an option");
        assert_eq!(options.iter().next(), None);
    }
}
