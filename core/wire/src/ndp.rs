//! Neighbour discovery (RFC 4861): who is where, and which routers and prefixes there are.
//!
//! A message is an ICMPv6 message whose checksum was checked (`icmpv6`). What its IP
//! header must look like (hop limit 255, source) is the stack's to judge.

use core::net::Ipv6Addr;

use crate::bytes::{ipv6_at, put, put_u16, put_u32, u8_at, u16_at, u32_at};
use crate::ndp_options::{NdpOption, NdpOptions};
use crate::{Icmpv6View, Malformed};

pub(crate) const ROUTER_SOLICIT: u8 = 133;
pub(crate) const ROUTER_ADVERT: u8 = 134;
pub(crate) const NEIGHBOR_SOLICIT: u8 = 135;
pub(crate) const NEIGHBOR_ADVERT: u8 = 136;
pub(crate) const REDIRECT: u8 = 137;

const ROUTER_SOLICIT_BYTES: usize = 8;
const ROUTER_ADVERT_BYTES: usize = 16;
const NEIGHBOR_BYTES: usize = 24;
const REDIRECT_BYTES: usize = 40;

const MANAGED: u8 = 0x80;
const OTHER: u8 = 0x40;
const FROM_ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// How much a router wants to be the default one (RFC 4191 2.1), worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RouterPreference {
    /// Only if there is no other.
    Low,
    /// As usual.
    Medium,
    /// Before others.
    High,
}

impl RouterPreference {
    const fn from_flags(flags: u8) -> Self {
        match flags >> 3 & 3 {
            1 => Self::High,
            3 => Self::Low,
            // RFC 4191 2.2: the reserved value counts as medium.
            _ => Self::Medium,
        }
    }

    const fn flags(self) -> u8 {
        match self {
            Self::Low => 3 << 3,
            Self::Medium => 0,
            Self::High => 1 << 3,
        }
    }
}

/// What a router says about itself and the link; zero means that it does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterAdvert {
    /// Hop limit for packets sent.
    pub hop_limit: u8,
    /// Addresses are had from DHCPv6.
    pub is_managed: bool,
    /// Other facts are had from DHCPv6.
    pub has_other: bool,
    /// Which router is taken if there are several.
    pub preference: RouterPreference,
    /// Seconds for which it is a default router; zero if it is none.
    pub lifetime_secs: u16,
    /// How long a neighbour counts as reachable, in milliseconds.
    pub reachable_ms: u32,
    /// Between two questions, in milliseconds.
    pub retrans_ms: u32,
}

/// A message without its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpRepr {
    /// Is there a router?
    RouterSolicit,
    /// There is.
    RouterAdvert(RouterAdvert),
    /// Who has `target`?
    NeighborSolicit {
        /// Asked for.
        target: Ipv6Addr,
    },
    /// `target` is at the station that an option names.
    NeighborAdvert {
        /// Whose station.
        target: Ipv6Addr,
        /// It is a router.
        is_router: bool,
        /// It answers a question of ours.
        is_solicited: bool,
        /// It replaces what we know.
        is_override: bool,
    },
    /// Packets for `destination` go to `target` rather than to the sender.
    Redirect {
        /// The better first hop.
        target: Ipv6Addr,
        /// Where packets are sent.
        destination: Ipv6Addr,
    },
}

impl NdpRepr {
    /// Reads a message; `Ok(None)` for a type that is not of neighbour discovery.
    pub fn parse<'a>(
        message: &Icmpv6View<'a>,
    ) -> Result<Option<(Self, NdpOptions<'a>)>, Malformed> {
        let bytes = message.bytes();
        let fixed = match message.kind() {
            ROUTER_SOLICIT => ROUTER_SOLICIT_BYTES,
            ROUTER_ADVERT => ROUTER_ADVERT_BYTES,
            NEIGHBOR_SOLICIT | NEIGHBOR_ADVERT => NEIGHBOR_BYTES,
            REDIRECT => REDIRECT_BYTES,
            _ => return Ok(None),
        };
        let options = bytes.get(fixed..).ok_or(Malformed::Truncated)?;
        if message.code() != 0 {
            return Err(Malformed::Version);
        }
        let options = NdpOptions::parse(options)?;
        Ok(Some((Self::of(message.kind(), bytes), options)))
    }

    /// Of `bytes` that are long enough for their type.
    fn of(kind: u8, bytes: &[u8]) -> Self {
        let (flags, target) = (u8_at(bytes, 4), ipv6_at(bytes, 8));
        match kind {
            ROUTER_SOLICIT => Self::RouterSolicit,
            ROUTER_ADVERT => Self::RouterAdvert(RouterAdvert {
                hop_limit: flags,
                is_managed: u8_at(bytes, 5) & MANAGED != 0,
                has_other: u8_at(bytes, 5) & OTHER != 0,
                preference: RouterPreference::from_flags(u8_at(bytes, 5)),
                lifetime_secs: u16_at(bytes, 6),
                reachable_ms: u32_at(bytes, 8),
                retrans_ms: u32_at(bytes, 12),
            }),
            NEIGHBOR_SOLICIT => Self::NeighborSolicit { target },
            NEIGHBOR_ADVERT => Self::NeighborAdvert {
                target,
                is_router: flags & FROM_ROUTER != 0,
                is_solicited: flags & SOLICITED != 0,
                is_override: flags & OVERRIDE != 0,
            },
            _ => Self::Redirect {
                target,
                destination: ipv6_at(bytes, 24),
            },
        }
    }

    /// Bytes without options.
    pub const fn len(&self) -> usize {
        match self {
            Self::RouterSolicit => ROUTER_SOLICIT_BYTES,
            Self::RouterAdvert(_) => ROUTER_ADVERT_BYTES,
            Self::NeighborSolicit { .. } | Self::NeighborAdvert { .. } => NEIGHBOR_BYTES,
            Self::Redirect { .. } => REDIRECT_BYTES,
        }
    }

    /// No message is empty.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the message with `options` behind it, the checksum left zero; returns its
    /// length, which `bytes` must have.
    pub fn emit(&self, bytes: &mut [u8], options: &[NdpOption]) -> usize {
        let mut at = self.len();
        if let Some(fixed) = bytes.get_mut(..at) {
            fixed.fill(0);
            self.emit_fixed(fixed);
        }
        for option in options {
            option.emit(bytes.get_mut(at..).unwrap_or_default());
            at += option.len();
        }
        at
    }

    fn emit_fixed(&self, bytes: &mut [u8]) {
        match *self {
            Self::RouterSolicit => put(bytes, 0, [ROUTER_SOLICIT]),
            Self::RouterAdvert(advert) => {
                let managed = if advert.is_managed { MANAGED } else { 0 };
                let other = if advert.has_other { OTHER } else { 0 };
                let flags = managed | other | advert.preference.flags();
                put(bytes, 0, [ROUTER_ADVERT]);
                put(bytes, 4, [advert.hop_limit, flags]);
                put_u16(bytes, 6, advert.lifetime_secs);
                put_u32(bytes, 8, advert.reachable_ms);
                put_u32(bytes, 12, advert.retrans_ms);
            }
            Self::NeighborSolicit { target } => {
                put(bytes, 0, [NEIGHBOR_SOLICIT]);
                put(bytes, 8, target.octets());
            }
            Self::NeighborAdvert {
                target,
                is_router,
                is_solicited,
                is_override,
            } => {
                let flag = |is_set, bit| if is_set { bit } else { 0 };
                let flags = flag(is_router, FROM_ROUTER)
                    | flag(is_solicited, SOLICITED)
                    | flag(is_override, OVERRIDE);
                put(bytes, 0, [NEIGHBOR_ADVERT]);
                put(bytes, 4, [flags]);
                put(bytes, 8, target.octets());
            }
            Self::Redirect {
                target,
                destination,
            } => {
                put(bytes, 0, [REDIRECT]);
                put(bytes, 8, target.octets());
                put(bytes, 24, destination.octets());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MacAddr, fill_icmpv6_checksum};

    const A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    #[test]
    fn every_message_reads_as_it_was_written() {
        let messages = [
            NdpRepr::RouterSolicit,
            NdpRepr::RouterAdvert(RouterAdvert {
                hop_limit: 64,
                is_managed: true,
                has_other: false,
                preference: RouterPreference::High,
                lifetime_secs: 1800,
                reachable_ms: 30_000,
                retrans_ms: 1000,
            }),
            NdpRepr::NeighborSolicit { target: B },
            NdpRepr::NeighborAdvert {
                target: A,
                is_router: true,
                is_solicited: false,
                is_override: true,
            },
            NdpRepr::Redirect {
                target: A,
                destination: B,
            },
        ];
        let link = NdpOption::SourceLink(MacAddr([2, 0, 0, 0, 0, 9]));
        for repr in messages {
            let mut bytes = [0xff; 80];
            let len = repr.emit(&mut bytes, &[link]);
            fill_icmpv6_checksum(&mut bytes[..len], A, B);
            let view = Icmpv6View::parse(&bytes[..len], A, B).expect("a message");
            let (read, options) = NdpRepr::parse(&view).expect("whole").expect("of ours");
            assert_eq!(read, repr);
            assert!(options.iter().eq([link]));
        }
    }

    #[test]
    fn a_message_without_its_target_is_refused() {
        let mut bytes = [0; 20];
        bytes[0] = NEIGHBOR_SOLICIT;
        fill_icmpv6_checksum(&mut bytes, A, B);
        let view = Icmpv6View::parse(&bytes, A, B).expect("a sum that is right");
        assert_eq!(NdpRepr::parse(&view), Err(Malformed::Truncated));
    }

    #[test]
    fn the_reserved_preference_counts_as_medium() {
        for (flags, preference) in [
            (0, RouterPreference::Medium),
            (1 << 3, RouterPreference::High),
            (2 << 3, RouterPreference::Medium),
            (3 << 3, RouterPreference::Low),
        ] {
            assert_eq!(RouterPreference::from_flags(flags), preference);
        }
    }
}
