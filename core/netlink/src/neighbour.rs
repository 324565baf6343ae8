//! Neighbours (`RTM_*NEIGH`, `struct ndmsg`, `NDA_*`).

use core::net::IpAddr;

use crate::ParseError;
use crate::attribute::Attribute;
use crate::dump::Emit;
use crate::fields::{u8_at, u16_at, u32_at};
use crate::ip;
use crate::parse::Parse;
use crate::writer::Body;

pub(crate) const NEW: u16 = 28;

/// Bytes of a link address (`MAX_ADDR_LEN`).
const ADDRESS_MAX: usize = 32;

mod kind {
    pub const ADDRESS: u16 = 1;
    pub const LINK_ADDRESS: u16 = 2;
    pub const AGES: u16 = 3;
    pub const PROBES: u16 = 4;
    pub const VLAN: u16 = 5;
    pub const LINK: u16 = 8;
    pub const MASTER: u16 = 9;
    pub const PROTOCOL: u16 = 12;
}

/// A neighbour, or what a command says of one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Neighbour<'a> {
    /// `AF_INET`, `AF_INET6`, `AF_BRIDGE`, or none in a request for all.
    pub family: u8,
    /// The link's number; a request may give it in an attribute.
    pub link: u32,
    /// `NUD_*`.
    pub state: u16,
    /// `NTF_*`.
    pub flags: u8,
    /// `RTN_*`.
    pub kind: u8,
    /// Its address.
    pub address: Option<IpAddr>,
    /// Where frames to it go.
    pub link_address: Option<&'a [u8]>,
    /// A bridge's number, in a request.
    pub master: Option<u32>,
    /// A VLAN's identifier.
    pub vlan: Option<u16>,
    /// Who made it: `RTPROT_*`.
    pub protocol: Option<u8>,
    /// Solicitations without an answer.
    pub probes: Option<u32>,
    /// Hundredths of seconds since it was confirmed, used and changed; then its users.
    pub ages: Option<[u32; 4]>,
}

impl<'a> Parse<'a> for Neighbour<'a> {
    const STRUCTURE_BYTES: usize = 12;

    fn start(structure: &[u8]) -> Self {
        Self {
            family: u8_at(structure, 0),
            link: u32_at(structure, 4),
            state: u16_at(structure, 8),
            flags: u8_at(structure, 10),
            kind: u8_at(structure, 11),
            ..Self::default()
        }
    }

    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, ParseError> {
        match attribute.kind {
            kind::ADDRESS => self.address = Some(ip::parse(attribute, self.family)?),
            kind::LINK_ADDRESS => self.link_address = Some(attribute.bytes(ADDRESS_MAX)?),
            kind::LINK => self.link = attribute.u32()?,
            kind::MASTER => self.master = Some(attribute.u32()?),
            kind::VLAN => self.vlan = Some(attribute.u16()?),
            kind::PROTOCOL => self.protocol = Some(attribute.u8()?),
            kind::PROBES => self.probes = Some(attribute.u32()?),
            kind::AGES => self.ages = Some(attribute.words()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Emit for Neighbour<'_> {
    fn kind(&self) -> u16 {
        NEW
    }

    fn emit(&self, to: &mut Body) {
        to.u8(self.family).u8(0).u16(0).u32(self.link);
        to.u16(self.state).u8(self.flags).u8(self.kind);
        to.optional_address(kind::ADDRESS, self.address)
            .optional(kind::LINK_ADDRESS, self.link_address)
            .optional_u32(kind::PROBES, self.probes)
            .optional_u32(kind::MASTER, self.master)
            .optional(kind::VLAN, self.vlan.map(u16::to_le_bytes))
            .optional_u8(kind::PROTOCOL, self.protocol)
            .optional_words(kind::AGES, self.ages);
    }
}
