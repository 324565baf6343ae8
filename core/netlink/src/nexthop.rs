//! The ways of a route with several (`RTA_MULTIPATH`, `struct rtnexthop`).
//!
//! A way is `len[2] flags[1] weight-1[1] link[4]`, then attributes as a route has them.

use core::net::IpAddr;

use crate::ParseError;
use crate::attribute::{Attribute, Attributes};
use crate::fields::{u8_at, u16_at, u32_at};
use crate::ip;
use crate::route::kind;
use crate::writer::Body;

const HEADER_BYTES: usize = 8;

/// One way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Nexthop {
    /// `RTNH_F_*`.
    pub flags: u8,
    /// Its share, less one.
    pub weight_less_one: u8,
    /// The link's number, or zero.
    pub link: u32,
    /// The router.
    pub gateway: Option<IpAddr>,
}

impl Nexthop {
    fn parse(bytes: &[u8], offset: usize, family: u8) -> Result<Self, ParseError> {
        let mut hop = Self {
            flags: u8_at(bytes, 2),
            weight_less_one: u8_at(bytes, 3),
            link: u32_at(bytes, 4),
            gateway: None,
        };
        let rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
        for attribute in Attributes::new(rest, offset + HEADER_BYTES) {
            match attribute.kind {
                kind::GATEWAY => hop.gateway = Some(ip::parse(&attribute, family)?),
                kind::VIA => hop.gateway = Some(via(&attribute)?),
                _ => {}
            }
        }
        Ok(hop)
    }
}

/// A router of another family: `family[2] address`.
pub(crate) fn via(attribute: &Attribute) -> Result<IpAddr, ParseError> {
    let family = u8_at(attribute.value, 0);
    let (_, address) = attribute
        .value
        .split_at_checked(2)
        .ok_or(attribute.error())?;
    let address = Attribute {
        value: address,
        ..*attribute
    };
    ip::parse(&address, family)
}

/// Ways, in order: the kernel's own, or those in a message, which have been looked at.
#[derive(Clone, Copy, Debug)]
pub struct Nexthops<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Ours(&'a [Nexthop]),
    Message { bytes: &'a [u8], family: u8 },
}

impl<'a> Nexthops<'a> {
    /// The kernel's own.
    pub fn new(hops: &'a [Nexthop]) -> Self {
        Self(Form::Ours(hops))
    }

    /// Those in an attribute; each is looked at here once.
    pub(crate) fn parse(attribute: &Attribute<'a>, family: u8) -> Result<Self, ParseError> {
        let mut bytes = attribute.value;
        while !bytes.is_empty() {
            let (hop, rest) = split(bytes).ok_or(attribute.error())?;
            Nexthop::parse(hop, attribute.offset, family)?;
            bytes = rest;
        }
        let bytes = attribute.value;
        Ok(Self(Form::Message { bytes, family }))
    }

    /// The ways.
    pub fn iter(&self) -> impl Iterator<Item = Nexthop> + 'a {
        let mut form = self.0;
        core::iter::from_fn(move || match &mut form {
            Form::Ours(hops) => {
                let (first, rest) = hops.split_first()?;
                *hops = rest;
                Some(*first)
            }
            Form::Message { bytes, family } => {
                let (hop, rest) = split(bytes)?;
                *bytes = rest;
                Nexthop::parse(hop, 0, *family).ok()
            }
        })
    }

    /// Writes them into a route of `family`.
    pub(crate) fn emit(&self, to: &mut Body, family: u8) {
        for hop in self.iter() {
            to.nexthop(&hop, family);
        }
    }
}

impl PartialEq for Nexthops<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Nexthops<'_> {}

/// The first way's bytes and what is behind it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(u16_at(bytes, 0));
    let hop = bytes.get(..len).filter(|_| len >= HEADER_BYTES)?;
    let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((hop, rest))
}

impl Body<'_> {
    fn nexthop(&mut self, hop: &Nexthop, family: u8) {
        let start = self.len();
        self.u16(0);
        self.u8(hop.flags).u8(hop.weight_less_one).u32(hop.link);
        self.gateway(hop.gateway, family);
        self.set_len(start);
    }

    /// A router: of the route's own family, or with its family in front.
    pub(crate) fn gateway(&mut self, gateway: Option<IpAddr>, family: u8) -> &mut Self {
        match (gateway, family) {
            (Some(IpAddr::V6(gateway)), ip::V4) => self.nested(kind::VIA, |to| {
                to.u16(ip::V6.into()).bytes(&gateway.octets());
            }),
            (Some(IpAddr::V4(gateway)), ip::V6) => self.nested(kind::VIA, |to| {
                to.u16(ip::V4.into()).bytes(&gateway.octets());
            }),
            (gateway, _) => self.optional_address(kind::GATEWAY, gateway),
        }
    }
}
