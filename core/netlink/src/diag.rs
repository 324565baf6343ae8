//! What `ss` asks: which sockets are there (`struct inet_diag_req_v2`).

use core::net::{IpAddr, SocketAddr};

use crate::diag_filter::DiagFilter;
use crate::fields::{array, u8_at, u32_at};
use crate::message::Message;
use crate::writer::Body;
use crate::{Flags, ParseError, ip};

pub(crate) const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;
const STRUCTURE_BYTES: usize = 56;

mod kind {
    pub const BYTECODE: u16 = 1;
    pub const PROTOCOL: u16 = 3;
}

/// Which socket (`struct inet_diag_sockid`): addresses, link and a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketId {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end; nowhere if it has none.
    pub remote: SocketAddr,
    /// The link that it is bound to, or zero.
    pub link: u32,
    /// A number that no other socket has had; all ones in a request for any.
    pub cookie: u64,
}

impl SocketId {
    pub(crate) const BYTES: usize = 48;

    /// Reads one of `family`, which is IPv4 or IPv6.
    pub(crate) fn parse(bytes: &[u8], family: u8) -> Self {
        let address = |at| match family {
            ip::V4 => IpAddr::from(array::<4>(bytes, at)),
            _ => IpAddr::from(array::<16>(bytes, at)),
        };
        let port = |at| u16::from_be_bytes(array(bytes, at));
        Self {
            local: SocketAddr::new(address(4), port(0)),
            remote: SocketAddr::new(address(20), port(2)),
            link: u32_at(bytes, 36),
            cookie: u64::from(u32_at(bytes, 40)) | u64::from(u32_at(bytes, 44)) << 32,
        }
    }

    pub(crate) fn emit(&self, to: &mut Body) {
        to.bytes(&self.local.port().to_be_bytes());
        to.bytes(&self.remote.port().to_be_bytes());
        for address in [self.local.ip(), self.remote.ip()] {
            match address {
                IpAddr::V4(four) => to.bytes(&four.octets()).bytes(&[0; 12]),
                IpAddr::V6(six) => to.bytes(&six.octets()),
            };
        }
        to.u32(self.link).bytes(&self.cookie.to_le_bytes());
    }
}

/// A request about sockets of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiagRequest<'a> {
    /// All sockets that the rest selects, or the one of `id`.
    pub is_dump: bool,
    /// To end the one of `id` instead of showing it.
    pub is_destroy: bool,
    /// `AF_INET` or `AF_INET6`.
    pub family: u8,
    /// The protocol's number, such as TCP's.
    pub protocol: u32,
    /// Which attributes are wanted: bit `n - 1` for attribute `n` (`INET_DIAG_*`).
    pub wanted: u8,
    /// Which states: bit `n` for state `n`.
    pub states: u32,
    /// Which socket; in a dump, nothing or a port.
    pub id: SocketId,
    /// A program that selects sockets.
    pub filter: Option<DiagFilter<'a>>,
}

impl<'a> DiagRequest<'a> {
    /// Reads a message of the socket family.
    pub fn parse(message: &Message<'a>) -> Result<Self, ParseError> {
        let header = message.header();
        if !matches!(header.kind, BY_FAMILY | DESTROY) {
            return Err(ParseError::Kind(header.kind));
        }
        let body = message.body();
        let has = body.len();
        let needs = STRUCTURE_BYTES;
        // The family says which structure follows.
        let family = u8_at(body, 0);
        if has >= 1 && !matches!(family, ip::V4 | ip::V6) {
            return Err(ParseError::Family(family));
        }
        let (head, id) = body.split_at_checked(8).unwrap_or_default();
        if id.len() < SocketId::BYTES {
            return Err(ParseError::Truncated { has, needs });
        }
        let mut request = Self {
            is_dump: header.flags.any(Flags::DUMP),
            is_destroy: header.kind == DESTROY,
            family,
            protocol: u8_at(head, 1).into(),
            wanted: u8_at(head, 2),
            states: u32_at(head, 4),
            id: SocketId::parse(id, family),
            filter: None,
        };
        for attribute in message.attributes(STRUCTURE_BYTES) {
            match attribute.kind {
                kind::BYTECODE => {
                    let filter = DiagFilter::check(attribute.value);
                    request.filter = Some(filter.ok_or(attribute.error())?);
                }
                kind::PROTOCOL => request.protocol = attribute.u32()?,
                _ => {}
            }
        }
        Ok(request)
    }

    /// Whether attribute `number` is wanted.
    pub fn wants(&self, number: u8) -> bool {
        (1..=8).contains(&number) && self.wanted & 1 << (number - 1) != 0
    }
}
