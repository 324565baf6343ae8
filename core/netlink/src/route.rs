//! Routes (`RTM_*ROUTE`, `struct rtmsg`, `RTA_*`).

use core::net::IpAddr;

use crate::ParseError;
use crate::attribute::Attribute;
use crate::dump::Emit;
use crate::fields::{u8_at, u32_at};
use crate::ip;
use crate::nexthop::{Nexthops, via};
use crate::parse::Parse;
use crate::writer::Body;

pub(crate) const NEW: u16 = 24;

pub(crate) mod kind {
    pub const DESTINATION: u16 = 1;
    pub const SOURCE: u16 = 2;
    pub const FROM_LINK: u16 = 3;
    pub const LINK: u16 = 4;
    pub const GATEWAY: u16 = 5;
    pub const METRIC: u16 = 6;
    pub const PREFERRED_SOURCE: u16 = 7;
    pub const METRICS: u16 = 8;
    pub const NEXTHOPS: u16 = 9;
    pub const TABLE: u16 = 15;
    pub const MARK: u16 = 16;
    pub const VIA: u16 = 18;
    pub const PREFERENCE: u16 = 20;
    pub const USER: u16 = 25;
    /// In [`METRICS`].
    pub const MTU: u16 = 2;
}

/// A route, what a command says of one, or where a packet is to go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Route<'a> {
    /// `AF_INET`, `AF_INET6`, or none in a request for all.
    pub family: u8,
    /// Bits of the destination's prefix.
    pub destination_len: u8,
    /// Bits of the source's prefix.
    pub source_len: u8,
    /// The traffic class.
    pub service: u8,
    /// The table's number; 254 is the main one.
    pub table: u32,
    /// Who made it: `RTPROT_*`.
    pub protocol: u8,
    /// How far the destination is: `RT_SCOPE_*`.
    pub scope: u8,
    /// What happens to the packet: `RTN_*`.
    pub kind: u8,
    /// `RTNH_F_*` and `RTM_F_*`.
    pub flags: u32,
    /// Where to; none for the default route.
    pub destination: Option<IpAddr>,
    /// Where from.
    pub source: Option<IpAddr>,
    /// The number of the link that a packet came by.
    pub from_link: Option<u32>,
    /// The number of the link to send by.
    pub link: Option<u32>,
    /// The router, of either family.
    pub gateway: Option<IpAddr>,
    /// The lower one wins.
    pub metric: Option<u32>,
    /// The address to send from.
    pub preferred_source: Option<IpAddr>,
    /// The path's MTU in bytes.
    pub mtu: Option<u32>,
    /// The ways, if there are several.
    pub nexthops: Option<Nexthops<'a>>,
    /// The packet's mark.
    pub mark: Option<u32>,
    /// A router's preference (RFC 4191).
    pub preference: Option<u8>,
    /// The user on whose behalf a request looks.
    pub user: Option<u32>,
}

impl<'a> Parse<'a> for Route<'a> {
    const STRUCTURE_BYTES: usize = 12;

    fn start(structure: &[u8]) -> Self {
        Self {
            family: u8_at(structure, 0),
            destination_len: u8_at(structure, 1),
            source_len: u8_at(structure, 2),
            service: u8_at(structure, 3),
            table: u8_at(structure, 4).into(),
            protocol: u8_at(structure, 5),
            scope: u8_at(structure, 6),
            kind: u8_at(structure, 7),
            flags: u32_at(structure, 8),
            ..Self::default()
        }
    }

    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, ParseError> {
        let address = || ip::parse(attribute, self.family).map(Some);
        match attribute.kind {
            kind::DESTINATION => {
                self.destination = prefix(attribute, self.family, self.destination_len)?
            }
            kind::SOURCE => self.source = prefix(attribute, self.family, self.source_len)?,
            kind::GATEWAY => self.gateway = address()?,
            kind::VIA => self.gateway = Some(via(attribute)?),
            kind::PREFERRED_SOURCE => self.preferred_source = address()?,
            kind::FROM_LINK => self.from_link = Some(attribute.u32()?),
            kind::LINK => self.link = Some(attribute.u32()?),
            kind::METRIC => self.metric = Some(attribute.u32()?),
            kind::NEXTHOPS => self.nexthops = Some(Nexthops::parse(attribute, self.family)?),
            kind::TABLE => self.table = attribute.u32()?,
            kind::MARK => self.mark = Some(attribute.u32()?),
            kind::PREFERENCE => self.preference = Some(attribute.u8()?),
            kind::USER => self.user = Some(attribute.u32()?),
            kind::METRICS => return self.take_metrics(attribute),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Route<'_> {
    /// Of the path's metrics only the MTU is known.
    fn take_metrics(&mut self, metrics: &Attribute) -> Result<bool, ParseError> {
        let mut all_known = true;
        for metric in metrics.nested() {
            match metric.kind {
                kind::MTU => self.mtu = Some(metric.u32()?),
                _ => all_known = false,
            }
        }
        Ok(all_known)
    }
}

/// An address and the length of its prefix that the structure has named.
pub(crate) fn prefix(
    attribute: &Attribute,
    family: u8,
    len: u8,
) -> Result<Option<IpAddr>, ParseError> {
    let address = ip::parse(attribute, family)?;
    let fits = len <= ip::bits(family);
    fits.then_some(Some(address)).ok_or(attribute.error())
}

impl Emit for Route<'_> {
    fn kind(&self) -> u16 {
        NEW
    }

    fn emit(&self, to: &mut Body) {
        to.u8(self.family).u8(self.destination_len);
        to.u8(self.source_len).u8(self.service);
        // A table beyond 255 is in the attribute only; 252 says so (`RT_TABLE_COMPAT`).
        to.u8(u8::try_from(self.table).unwrap_or(252));
        to.u8(self.protocol).u8(self.scope).u8(self.kind);
        to.u32(self.flags);
        to.optional_u32(kind::TABLE, Some(self.table))
            .optional_address(kind::DESTINATION, self.destination)
            .optional_address(kind::SOURCE, self.source)
            .optional_u32(kind::METRIC, self.metric)
            .optional_u32(kind::FROM_LINK, self.from_link)
            .optional_address(kind::PREFERRED_SOURCE, self.preferred_source)
            .gateway(self.gateway, self.family)
            .optional_u32(kind::LINK, self.link)
            .optional_u32(kind::MARK, self.mark)
            .optional_u32(kind::USER, self.user)
            .optional_u8(kind::PREFERENCE, self.preference);
        if self.mtu.is_some() {
            to.nested(kind::METRICS, |to| {
                to.optional_u32(kind::MTU, self.mtu);
            });
        }
        if let Some(nexthops) = &self.nexthops {
            to.nested(kind::NEXTHOPS, |to| nexthops.emit(to, self.family));
        }
    }
}
