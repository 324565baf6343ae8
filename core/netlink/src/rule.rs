//! Rules: which packets look in which table (`RTM_*RULE`, `struct fib_rule_hdr`, `FRA_*`).

use core::net::IpAddr;

use crate::ParseError;
use crate::attribute::Attribute;
use crate::dump::Emit;
use crate::fields::{u8_at, u32_at};
use crate::parse::Parse;
use crate::route::prefix;
use crate::writer::Body;

pub(crate) const NEW: u16 = 32;

/// Bytes of a link's name without its zero.
const NAME_MAX: usize = 15;

mod kind {
    pub const DESTINATION: u16 = 1;
    pub const SOURCE: u16 = 2;
    pub const FROM_LINK: u16 = 3;
    pub const TARGET: u16 = 4;
    pub const PRIORITY: u16 = 6;
    pub const MARK: u16 = 10;
    pub const SUPPRESS_PREFIX_LEN: u16 = 14;
    pub const TABLE: u16 = 15;
    pub const MARK_MASK: u16 = 16;
    pub const TO_LINK: u16 = 17;
    pub const PROTOCOL: u16 = 21;
    pub const TRANSPORT: u16 = 22;
}

/// A rule, or what a command says of one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rule<'a> {
    /// `AF_INET`, `AF_INET6`, or none in a request for all.
    pub family: u8,
    /// Bits of the destination's prefix.
    pub destination_len: u8,
    /// Bits of the source's prefix.
    pub source_len: u8,
    /// The traffic class.
    pub service: u8,
    /// The table's number.
    pub table: u32,
    /// `FR_ACT_*`.
    pub action: u8,
    /// `FIB_RULE_*`.
    pub flags: u32,
    /// Packets to here.
    pub destination: Option<IpAddr>,
    /// Packets from here.
    pub source: Option<IpAddr>,
    /// Packets that came by the link of this name.
    pub from_link: Option<&'a [u8]>,
    /// Packets that are to leave by the link of this name.
    pub to_link: Option<&'a [u8]>,
    /// The lower one is asked first.
    pub priority: Option<u32>,
    /// The packet's mark,
    pub mark: Option<u32>,
    /// in these bits.
    pub mark_mask: Option<u32>,
    /// The priority of the rule to go on with.
    pub target: Option<u32>,
    /// Routes of prefixes not longer than this do not count; all ones: all count.
    pub suppress_prefix_len: Option<u32>,
    /// Who made it: `RTPROT_*`.
    pub protocol: Option<u8>,
    /// TCP, UDP, ...
    pub transport: Option<u8>,
}

impl<'a> Parse<'a> for Rule<'a> {
    const STRUCTURE_BYTES: usize = 12;

    fn start(structure: &[u8]) -> Self {
        Self {
            family: u8_at(structure, 0),
            destination_len: u8_at(structure, 1),
            source_len: u8_at(structure, 2),
            service: u8_at(structure, 3),
            table: u8_at(structure, 4).into(),
            action: u8_at(structure, 7),
            flags: u32_at(structure, 8),
            ..Self::default()
        }
    }

    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, ParseError> {
        match attribute.kind {
            kind::DESTINATION => {
                self.destination = prefix(attribute, self.family, self.destination_len)?
            }
            kind::SOURCE => self.source = prefix(attribute, self.family, self.source_len)?,
            kind::FROM_LINK => self.from_link = Some(attribute.text(NAME_MAX)?),
            kind::TO_LINK => self.to_link = Some(attribute.text(NAME_MAX)?),
            kind::TARGET => self.target = Some(attribute.u32()?),
            kind::PRIORITY => self.priority = Some(attribute.u32()?),
            kind::MARK => self.mark = Some(attribute.u32()?),
            kind::MARK_MASK => self.mark_mask = Some(attribute.u32()?),
            kind::SUPPRESS_PREFIX_LEN => self.suppress_prefix_len = Some(attribute.u32()?),
            kind::TABLE => self.table = attribute.u32()?,
            kind::PROTOCOL => self.protocol = Some(attribute.u8()?),
            kind::TRANSPORT => self.transport = Some(attribute.u8()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Emit for Rule<'_> {
    fn kind(&self) -> u16 {
        NEW
    }

    fn emit(&self, to: &mut Body) {
        to.u8(self.family).u8(self.destination_len);
        to.u8(self.source_len).u8(self.service);
        to.u8(u8::try_from(self.table).unwrap_or(252)).u8(0).u8(0);
        to.u8(self.action).u32(self.flags);
        to.optional_u32(kind::TABLE, Some(self.table))
            .optional_u32(kind::SUPPRESS_PREFIX_LEN, self.suppress_prefix_len)
            .optional_u8(kind::PROTOCOL, self.protocol)
            .optional_u32(kind::PRIORITY, self.priority)
            .optional_text(kind::FROM_LINK, self.from_link)
            .optional_text(kind::TO_LINK, self.to_link)
            .optional_u32(kind::MARK, self.mark)
            .optional_u32(kind::MARK_MASK, self.mark_mask)
            .optional_address(kind::DESTINATION, self.destination)
            .optional_address(kind::SOURCE, self.source)
            .optional_u32(kind::TARGET, self.target)
            .optional_u8(kind::TRANSPORT, self.transport);
    }
}
