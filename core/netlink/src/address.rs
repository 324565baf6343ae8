//! Addresses of links (`RTM_*ADDR`, `struct ifaddrmsg`, `IFA_*`).

use core::net::IpAddr;

use crate::ParseError;
use crate::attribute::Attribute;
use crate::dump::Emit;
use crate::fields::{u8_at, u32_at};
use crate::ip;
use crate::parse::Parse;
use crate::writer::Body;

pub(crate) const NEW: u16 = 20;

/// Bytes of a label without its zero.
const LABEL_MAX: usize = 15;

mod kind {
    pub const ADDRESS: u16 = 1;
    pub const LOCAL: u16 = 2;
    pub const LABEL: u16 = 3;
    pub const BROADCAST: u16 = 4;
    pub const LIFETIMES: u16 = 6;
    pub const FLAGS: u16 = 8;
    pub const METRIC: u16 = 9;
    pub const PROTOCOL: u16 = 11;
}

/// An address, or what a command says of one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Address<'a> {
    /// `AF_INET`, `AF_INET6`, or none in a request for all.
    pub family: u8,
    /// Bits of the prefix.
    pub prefix_len: u8,
    /// `IFA_F_*`; the structure has the low eight.
    pub flags: u32,
    /// `RT_SCOPE_*`.
    pub scope: u8,
    /// The link's number.
    pub link: u32,
    /// The address, on a link to one peer the peer's; IPv6 has this alone.
    pub address: Option<IpAddr>,
    /// Our own address; the same as `address` but on a link to one peer.
    pub local: Option<IpAddr>,
    /// The broadcast address.
    pub broadcast: Option<IpAddr>,
    /// The name that old tools see.
    pub label: Option<&'a [u8]>,
    /// The metric of the prefix's route.
    pub metric: Option<u32>,
    /// Who made it (`IFAPROT_*`).
    pub protocol: Option<u8>,
    /// For how long it is preferred, then valid, in seconds (all ones: for ever); then when it
    /// was made and changed, in hundredths of seconds since the start.
    pub lifetimes: Option<[u32; 4]>,
}

impl<'a> Parse<'a> for Address<'a> {
    const STRUCTURE_BYTES: usize = 8;

    fn start(structure: &[u8]) -> Self {
        Self {
            family: u8_at(structure, 0),
            prefix_len: u8_at(structure, 1),
            flags: u8_at(structure, 2).into(),
            scope: u8_at(structure, 3),
            link: u32_at(structure, 4),
            ..Self::default()
        }
    }

    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, ParseError> {
        let address = || ip::parse(attribute, self.family).map(Some);
        match attribute.kind {
            kind::ADDRESS => self.address = address()?,
            kind::LOCAL => self.local = address()?,
            kind::BROADCAST => self.broadcast = address()?,
            kind::LABEL => self.label = Some(attribute.text(LABEL_MAX)?),
            kind::FLAGS => self.flags = attribute.u32()?,
            kind::METRIC => self.metric = Some(attribute.u32()?),
            kind::PROTOCOL => self.protocol = Some(attribute.u8()?),
            kind::LIFETIMES => self.lifetimes = Some(attribute.words()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Emit for Address<'_> {
    fn kind(&self) -> u16 {
        NEW
    }

    fn emit(&self, to: &mut Body) {
        to.u8(self.family).u8(self.prefix_len);
        to.u8(self.flags as u8).u8(self.scope).u32(self.link);
        to.optional_address(kind::ADDRESS, self.address)
            .optional_address(kind::LOCAL, self.local)
            .optional_address(kind::BROADCAST, self.broadcast)
            .optional_text(kind::LABEL, self.label)
            .optional_u8(kind::PROTOCOL, self.protocol)
            .optional_u32(kind::FLAGS, Some(self.flags))
            .optional_u32(kind::METRIC, self.metric)
            .optional_words(kind::LIFETIMES, self.lifetimes);
    }
}
