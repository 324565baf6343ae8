//! Addresses of IP in attributes: four or sixteen bytes.

use core::net::IpAddr;

use crate::ParseError;
use crate::attribute::Attribute;
use crate::writer::Body;

/// `AF_INET`.
pub(crate) const V4: u8 = 2;
/// `AF_INET6`.
pub(crate) const V6: u8 = 10;

/// An address by its bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// An attribute's address; it must be of `family` unless that is any.
pub(crate) fn parse(attribute: &Attribute, family: u8) -> Result<IpAddr, ParseError> {
    from_bytes(attribute.value)
        .filter(|address| match family {
            V4 => address.is_ipv4(),
            V6 => address.is_ipv6(),
            _ => true,
        })
        .ok_or(attribute.error())
}

/// Bits of an address of `family`; a prefix is not longer.
pub(crate) fn bits(family: u8) -> u8 {
    match family {
        V4 => 32,
        _ => 128,
    }
}

impl Body<'_> {
    pub(crate) fn optional_address(&mut self, kind: u16, address: Option<IpAddr>) -> &mut Self {
        match address {
            Some(IpAddr::V4(address)) => self.attribute(kind, &address.octets()),
            Some(IpAddr::V6(address)) => self.attribute(kind, &address.octets()),
            None => self,
        }
    }
}
