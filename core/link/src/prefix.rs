//! Addresses and prefixes as the administrator writes them.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::MacAddr;

/// An address, or all addresses that begin alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpPrefix {
    addr: IpAddr,
    len: u8,
}

impl IpPrefix {
    /// `None` if the prefix is longer than an address.
    pub fn new(addr: IpAddr, len: u8) -> Option<Self> {
        (len <= bits_of(addr)).then_some(Self { addr, len })
    }

    /// From `ADDRESS` or `ADDRESS/BITS`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            Some((addr, len)) => Self::new(addr.parse().ok()?, len.parse().ok()?),
            None => {
                let addr = text.parse().ok()?;
                Self::new(addr, bits_of(addr))
            }
        }
    }

    /// The address that it begins like, with the bits that are not compared as written.
    pub fn addr(&self) -> IpAddr {
        self.addr
    }

    /// Bits that are compared.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether nothing is compared: all addresses of the family match.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `addr` begins like this.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match (self.addr, addr) {
            (IpAddr::V4(ours), IpAddr::V4(addr)) => {
                let differ = u128::from(ours.to_bits() ^ addr.to_bits()) << 96;
                differ.leading_zeros() >= u32::from(self.len)
            }
            (IpAddr::V6(ours), IpAddr::V6(addr)) => {
                let differ = ours.to_bits() ^ addr.to_bits();
                differ.leading_zeros() >= u32::from(self.len)
            }
            _ => false,
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len == bits_of(self.addr) {
            write!(f, "{}", self.addr)
        } else {
            write!(f, "{}/{}", self.addr, self.len)
        }
    }
}

const fn bits_of(addr: IpAddr) -> u8 {
    match addr {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address that a station gives itself in a /64 (RFC 4291, appendix A).
pub fn from_mac(prefix: Ipv6Addr, mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let interface = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    let network = prefix.to_bits() >> 64 << 64;
    Ipv6Addr::from_bits(network | u128::from(interface))
}

/// The link-local address of a station.
pub fn link_local(mac: MacAddr) -> Ipv6Addr {
    from_mac(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), mac)
}

/// Whether an address names no host.
pub(crate) fn is_unspecified(addr: IpAddr) -> bool {
    addr == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || addr == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_prefix_holds_what_begins_alike_and_nothing_of_the_other_family() {
        let prefix = IpPrefix::parse("192.168.10.0/24").expect("valid");
        let holds = |addr: &str| prefix.contains(addr.parse().expect("an address"));
        assert!(holds("192.168.10.77") && !holds("192.168.11.1"));
        assert!(!holds("::192.168.10.77"));
        let all = IpPrefix::parse("0.0.0.0/0").expect("valid");
        assert!(all.contains([9, 9, 9, 9].into()));
        let v6 = IpPrefix::parse("2001:db8::/33").expect("valid");
        assert!(v6.contains("2001:db8:7fff::1".parse().expect("ok")));
        assert!(!v6.contains("2001:db8:8000::1".parse().expect("ok")));
    }

    #[test]
    fn a_host_is_written_without_its_length_and_too_long_a_prefix_is_none() {
        let text = |text| IpPrefix::parse(text).map(|prefix| prefix.to_string());
        assert_eq!(text("10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(text("10.0.0.1/32").as_deref(), Some("10.0.0.1"));
        assert_eq!(text("fe80::/10").as_deref(), Some("fe80::/10"));
        for bad in ["10.0.0.1/33", "::/129", "10.0.0.1/", "host", ""] {
            assert_eq!(text(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_link_local_address_comes_from_the_station() {
        let mac = MacAddr([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        let expected: Ipv6Addr = "fe80::3656:78ff:fe9a:bcde".parse().expect("ok");
        assert_eq!(link_local(mac), expected);
    }
}
