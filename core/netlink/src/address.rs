//! Addresses of links (`RTM_*ADDR`, `struct ifaddrmsg`, `IFA_*`).

use core::net::IpAddr;

use crate::Flaw;
use crate::dump::Emit;
use crate::fields::{array, u8_at, u32_at};
use crate::ip;
use crate::message::Message;
use crate::writer::Body;

pub(crate) const NEW: u16 = 20;
pub(crate) const STRUCTURE_BYTES: usize = 8;

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

impl<'a> Address<'a> {
    pub(crate) fn parse(message: &Message<'a>) -> Result<Self, Flaw> {
        let body = message.body();
        let family = u8_at(body, 0);
        let mut address = Self {
            family,
            prefix_len: u8_at(body, 1),
            flags: u8_at(body, 2).into(),
            scope: u8_at(body, 3),
            link: u32_at(body, 4),
            ..Self::default()
        };
        for attribute in message.attributes(STRUCTURE_BYTES) {
            match attribute.kind {
                kind::ADDRESS => address.address = Some(ip::parse(&attribute, family)?),
                kind::LOCAL => address.local = Some(ip::parse(&attribute, family)?),
                kind::BROADCAST => address.broadcast = Some(ip::parse(&attribute, family)?),
                kind::LABEL => address.label = Some(attribute.text(LABEL_MAX)?),
                kind::FLAGS => address.flags = attribute.u32()?,
                kind::METRIC => address.metric = Some(attribute.u32()?),
                kind::PROTOCOL => address.protocol = Some(attribute.u8()?),
                kind::LIFETIMES => {
                    let words: [u8; 16] = attribute.array()?;
                    let word = |index: usize| u32::from_le_bytes(array(&words, index * 4));
                    address.lifetimes = Some([word(0), word(1), word(2), word(3)]);
                }
                _ => {}
            }
        }
        Ok(address)
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
            .optional_u32(kind::METRIC, self.metric);
        if let Some(lifetimes) = self.lifetimes {
            to.nested(kind::LIFETIMES, |to| {
                for word in lifetimes {
                    to.u32(word);
                }
            });
        }
    }
}
