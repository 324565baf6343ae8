//! The chain of extension headers behind an IPv6 header (RFC 8200 section 4).
//!
//! A sender may write a chain of any length; each byte of it costs us work before we know
//! whether anybody wants the packet. RFC 8504 section 5.3 and RFC 8883 let a host set
//! limits, so the walk ends after [`HEADERS_MAX`] headers, [`OPTIONS_MAX`] options and
//! [`EXTENSION_BYTES_MAX`] bytes. A fault says what the sender is told (RFC 4443 3.4).
//! Not here: reassembly, and any option that asks a host to do something.

use crate::bytes::{put, put_u16, put_u32, u8_at, u16_at, u32_at};
use crate::ipv6::{IPV6_HEADER_BYTES, next_header};

/// Headers in one chain.
const HEADERS_MAX: usize = 8;
/// Options, padding included, in all headers of one chain.
const OPTIONS_MAX: usize = 16;
/// Bytes of a whole chain.
pub const EXTENSION_BYTES_MAX: usize = 256;
/// Bytes of a fragment header.
pub const FRAGMENT_HEADER_BYTES: usize = 8;

const PAD1: u8 = 0;
const PAD_N: u8 = 1;
/// RFC 2711.
const ROUTER_ALERT: u8 = 5;
/// RFC 2675; our packets are never that long.
const JUMBO_PAYLOAD: u8 = 0xc2;

/// Which piece of which packet follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Fragment {
    /// Of the whole packet, among others with these addresses.
    pub ident: u32,
    /// Where the piece belongs behind the unfragmentable part, in bytes.
    pub offset: u16,
    /// Whether pieces follow behind it.
    pub has_more: bool,
    /// What the whole packet's fragmentable part starts with.
    pub next_header: u8,
}

impl Ipv6Fragment {
    fn parse(bytes: &[u8]) -> Self {
        let place = u16_at(bytes, 2);
        Self {
            ident: u32_at(bytes, 4),
            offset: place & !7,
            has_more: place & 1 != 0,
            next_header: u8_at(bytes, 0),
        }
    }

    /// Whether it is all of its packet (RFC 6946).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.has_more
    }

    /// Writes [`FRAGMENT_HEADER_BYTES`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        put(bytes, 0, [self.next_header, 0]);
        put_u16(bytes, 2, self.offset & !7 | u16::from(self.has_more));
        put_u32(bytes, 4, self.ident);
    }
}

/// What a chain leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extensions {
    /// Bytes of the chain: where the upper layer or the fragment's payload starts.
    pub len: usize,
    /// What is there; meaningless in a fragment that is not the first.
    pub upper: u8,
    /// The fragment header, which ends the walk unless it is atomic.
    pub fragment: Option<Ipv6Fragment>,
    /// A router along the way was asked to look (RFC 2711).
    pub has_router_alert: bool,
}

/// Why a packet goes no further. Pointers count from the IPv6 header's first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtensionFault {
    /// It ends inside its headers.
    Truncated,
    /// A field's value is wrong, at this byte (parameter problem, code 0).
    BadField(u32),
    /// No such header, at this byte (code 1).
    UnknownHeader(u32),
    /// An option that must be known, at this byte (code 2).
    UnknownOption {
        /// Of the option's type.
        at: u32,
        /// Whether the sender is told although the packet was multicast.
        tell_for_multicast: bool,
    },
    /// An option whose type asks for silence.
    Ignored,
    /// More headers, options or bytes than we look at (RFC 8883).
    TooMany,
}

impl Extensions {
    /// Walks the chain in `bytes`, which start behind the fixed header with a header of
    /// type `first`. An atomic fragment is walked through as if its header were not there.
    pub fn parse(bytes: &[u8], first: u8) -> Result<Self, ExtensionFault> {
        let mut walk = Walk {
            bytes,
            at: 0,
            // The fixed header's field.
            named_at: 6,
            options: 0,
        };
        let mut found = Self {
            len: 0,
            upper: first,
            fragment: None,
            has_router_alert: false,
        };
        for index in 0..=HEADERS_MAX {
            let is_extension = matches!(
                found.upper,
                next_header::HOP_BY_HOP
                    | next_header::ROUTING
                    | next_header::FRAGMENT
                    | next_header::DESTINATION
            );
            if !is_extension {
                return Ok(found);
            }
            if index == HEADERS_MAX {
                break;
            }
            walk.header(&mut found, index)?;
            if found.fragment.is_some_and(|piece| !piece.is_atomic()) {
                return Ok(found);
            }
        }
        Err(ExtensionFault::TooMany)
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    /// The header at hand.
    at: usize,
    /// The field that named it, from the IPv6 header's start.
    named_at: u32,
    options: usize,
}

/// An offset behind the fixed header as a pointer.
fn pointer(at: usize) -> u32 {
    (IPV6_HEADER_BYTES + at) as u32
}

impl Walk<'_> {
    fn header(&mut self, found: &mut Extensions, index: usize) -> Result<(), ExtensionFault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = match found.upper {
            next_header::FRAGMENT => FRAGMENT_HEADER_BYTES,
            _ => (usize::from(u8_at(rest, 1)) + 1) * 8,
        };
        if self.at + len > EXTENSION_BYTES_MAX {
            return Err(ExtensionFault::TooMany);
        }
        let header = rest.get(..len).ok_or(ExtensionFault::Truncated)?;
        match found.upper {
            next_header::HOP_BY_HOP if index > 0 => {
                return Err(ExtensionFault::UnknownHeader(self.named_at));
            }
            next_header::FRAGMENT => {
                if found.fragment.is_some() {
                    return Err(ExtensionFault::UnknownHeader(self.named_at));
                }
                found.fragment = Some(Ipv6Fragment::parse(header));
            }
            // No type is ours to follow; a route that is used up changes nothing.
            next_header::ROUTING => {
                if u8_at(header, 3) != 0 {
                    return Err(ExtensionFault::BadField(pointer(self.at + 2)));
                }
            }
            _ => self.walk_options(header, found)?,
        }
        found.upper = u8_at(header, 0);
        self.named_at = pointer(self.at);
        self.at += len;
        found.len = self.at;
        Ok(())
    }

    fn walk_options(
        &mut self,
        header: &[u8],
        found: &mut Extensions,
    ) -> Result<(), ExtensionFault> {
        let mut at = 2;
        while at < header.len() {
            self.options += 1;
            if self.options > OPTIONS_MAX {
                return Err(ExtensionFault::TooMany);
            }
            let kind = u8_at(header, at);
            if kind == PAD1 {
                at += 1;
                continue;
            }
            let len_at = at + 1;
            let len = usize::from(u8_at(header, len_at));
            if len_at >= header.len() || len_at + 1 + len > header.len() {
                return Err(ExtensionFault::BadField(pointer(self.at + len_at)));
            }
            match kind {
                PAD_N => {}
                ROUTER_ALERT => found.has_router_alert = true,
                _ => judge(kind, pointer(self.at + at))?,
            }
            at = len_at + 1 + len;
        }
        Ok(())
    }
}

/// RFC 8200 4.2: the two highest bits say what to do with an option that is not known.
fn judge(kind: u8, at: u32) -> Result<(), ExtensionFault> {
    match kind >> 6 {
        0 => Ok(()),
        1 => Err(ExtensionFault::Ignored),
        action => Err(ExtensionFault::UnknownOption {
            at,
            tell_for_multicast: action == 2 && kind != JUMBO_PAYLOAD,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: u8 = 17;
    const DSTOPTS: u8 = next_header::DESTINATION;

    /// A header of eight bytes whose options are all padding.
    const fn padded(next: u8) -> [u8; 8] {
        [next, 0, PAD_N, 4, 0, 0, 0, 0]
    }

    #[test]
    fn a_packet_without_extensions_has_an_empty_chain() {
        let found = Extensions::parse(&[], UDP).expect("no headers");
        assert_eq!((found.len, found.upper), (0, UDP));
    }

    #[test]
    fn the_walk_ends_at_the_upper_layer() {
        let chain = [padded(DSTOPTS), padded(UDP), [9; 8]].concat();
        let found = Extensions::parse(&chain, next_header::HOP_BY_HOP).expect("a chain");
        assert_eq!((found.len, found.upper), (16, UDP));
    }

    #[test]
    fn a_chain_that_is_too_long_is_not_walked_to_its_end() {
        let chain = [padded(DSTOPTS); 100].concat();
        let fault = Extensions::parse(&chain, DSTOPTS);
        assert_eq!(fault, Err(ExtensionFault::TooMany));
        let mut long = [0; 8 * 33];
        long[1] = 32;
        let fault = Extensions::parse(&long, DSTOPTS);
        assert_eq!(fault, Err(ExtensionFault::TooMany), "too many bytes");
        let mut many = [0; 32];
        many[1] = 3;
        let fault = Extensions::parse(&many, DSTOPTS);
        assert_eq!(fault, Err(ExtensionFault::TooMany), "too many options");
    }

    #[test]
    fn an_unknown_option_is_treated_as_its_type_asks() {
        let with = |kind| Extensions::parse(&[UDP, 0, kind, 4, 0, 0, 0, 0], DSTOPTS);
        assert!(with(0x1e).is_ok());
        assert_eq!(with(0x5e), Err(ExtensionFault::Ignored));
        for (kind, tell_for_multicast) in [(0x9e, true), (0xde, false), (JUMBO_PAYLOAD, false)] {
            let fault = ExtensionFault::UnknownOption {
                at: 42,
                tell_for_multicast,
            };
            assert_eq!(with(kind), Err(fault));
        }
    }

    #[test]
    fn an_option_that_leaves_its_header_is_pointed_at() {
        let fault = Extensions::parse(&[UDP, 0, PAD_N, 5, 0, 0, 0, 0], DSTOPTS);
        assert_eq!(fault, Err(ExtensionFault::BadField(43)));
    }

    #[test]
    fn options_for_routers_come_first_or_not_at_all() {
        let chain = [padded(next_header::HOP_BY_HOP), padded(UDP)].concat();
        let fault = Extensions::parse(&chain, DSTOPTS);
        assert_eq!(fault, Err(ExtensionFault::UnknownHeader(40)));
    }

    #[test]
    fn a_route_with_segments_left_is_refused() {
        let route = |left| Extensions::parse(&[UDP, 0, 0, left, 0, 0, 0, 0], next_header::ROUTING);
        assert!(route(0).is_ok());
        assert_eq!(route(1), Err(ExtensionFault::BadField(42)));
    }

    #[test]
    fn a_fragment_ends_the_walk_and_an_atomic_one_does_not() {
        let mut piece = Ipv6Fragment {
            ident: 7,
            offset: 1232,
            has_more: true,
            next_header: DSTOPTS,
        };
        let mut chain = [[0; 8], padded(UDP)].concat();
        piece.emit(&mut chain);
        let found = Extensions::parse(&chain, next_header::FRAGMENT).expect("a piece");
        assert_eq!((found.fragment, found.len), (Some(piece), 8));
        (piece.offset, piece.has_more) = (0, false);
        piece.emit(&mut chain);
        let found = Extensions::parse(&chain, next_header::FRAGMENT).expect("a packet");
        assert_eq!((found.upper, found.len), (UDP, 16));
    }

    #[test]
    fn a_packet_has_one_fragment_header_at_most() {
        let piece = Ipv6Fragment {
            ident: 7,
            offset: 0,
            has_more: false,
            next_header: next_header::FRAGMENT,
        };
        let mut chain = [0; 16];
        piece.emit(&mut chain);
        piece.emit(&mut chain[8..]);
        let fault = Extensions::parse(&chain, next_header::FRAGMENT);
        assert_eq!(fault, Err(ExtensionFault::UnknownHeader(40)));
    }
}
