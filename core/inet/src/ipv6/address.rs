//! Our addresses: their states, and which one is the source of a packet (RFC 6724).

use core::net::Ipv6Addr;

use base::Instant;

use super::{InterfaceId, Ipv6};
use crate::hash::Key;

/// Addresses of the port.
pub(super) const ADDRESSES_MAX: usize = 16;
/// Of those, made because routers announced their prefix.
pub(super) const ADVERT_ADDRESSES_MAX: usize = 8;

/// Where an address is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressState {
    /// We ask whether somebody has it. It is not used.
    Tentative,
    /// It is used.
    Preferred,
    /// It is used by what uses it already.
    Deprecated,
    /// Somebody has it. It is not used.
    Duplicate,
}

/// Where an address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressOrigin {
    /// Every port has one.
    LinkLocal,
    /// The shell set it.
    Static,
    /// A router announced its prefix.
    Advert,
}

/// An address of the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Address {
    /// The address.
    pub addr: Ipv6Addr,
    /// Bits of its network.
    pub prefix_len: u8,
    /// Where it is in its life.
    pub state: AddressState,
    /// Where it comes from.
    pub origin: AddressOrigin,
    /// When it is deprecated.
    pub preferred_until: Instant,
    /// When it is gone.
    pub valid_until: Instant,
    /// Questions still to be asked while it is tentative.
    pub(super) probes_left: u8,
    /// When its state changes or the next question is asked.
    pub(super) due: Instant,
    /// Of our questions, so that we know them when they come back (RFC 7527).
    pub(super) nonce: [u8; 6],
    /// Addresses of this prefix that were duplicates.
    pub(super) tries: u8,
}

impl Ipv6Address {
    pub(super) const fn is_assigned(&self) -> bool {
        matches!(
            self.state,
            AddressState::Preferred | AddressState::Deprecated
        )
    }

    /// Files when it will be deprecated or gone.
    pub(super) fn settle(&mut self, now: Instant) {
        self.due = match self.state {
            AddressState::Tentative => self.due,
            AddressState::Preferred if self.preferred_until > now => {
                self.preferred_until.min(self.valid_until)
            }
            _ => self.valid_until,
        };
        if self.state == AddressState::Preferred && self.preferred_until <= now {
            self.state = AddressState::Deprecated;
        } else if self.state == AddressState::Deprecated && self.preferred_until > now {
            self.state = AddressState::Preferred;
            self.due = self.preferred_until.min(self.valid_until);
        }
    }
}

/// How far an address is known (RFC 6724 3.1): of the link, or everywhere.
fn scope(addr: Ipv6Addr) -> u8 {
    if addr.is_multicast() {
        return addr.octets()[1] & 0xf;
    }
    match addr.is_unicast_link_local() || addr.is_loopback() {
        true => 0x2,
        false => 0xe,
    }
}

/// RFC 6724 2.1's policy, as far as we have such addresses: local ones go with local ones.
fn label(addr: Ipv6Addr) -> bool {
    addr.is_unique_local()
}

fn common_bits(a: Ipv6Addr, b: Ipv6Addr) -> u32 {
    (a.to_bits() ^ b.to_bits()).leading_zeros()
}

impl Ipv6 {
    /// Whether packets for `addr` are for us.
    pub fn owns(&self, addr: Ipv6Addr) -> bool {
        let own = self.addresses.iter().find(|own| own.addr == addr);
        own.is_some_and(Ipv6Address::is_assigned)
    }

    pub(super) fn find_mut(&mut self, addr: Ipv6Addr) -> Option<&mut Ipv6Address> {
        self.addresses.iter_mut().find(|own| own.addr == addr)
    }

    /// The source of packets to `dst`.
    pub fn source_for(&self, dst: Ipv6Addr) -> Option<Ipv6Addr> {
        best_source(&self.addresses, dst)
    }

    /// An address of ours on the link.
    pub(super) fn link_local(&self) -> Option<Ipv6Addr> {
        let mut assigned = self.addresses.iter().filter(|own| own.is_assigned());
        let own = assigned.find(|own| own.origin == AddressOrigin::LinkLocal)?;
        Some(own.addr)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Ipv6Address> {
        self.addresses.iter()
    }
}

/// Which of our addresses is the source of packets to `dst`; the first of the best, so the choice
/// is stable.
pub(super) fn best_source(addresses: &[Ipv6Address], dst: Ipv6Addr) -> Option<Ipv6Addr> {
    let order = |own: &Ipv6Address| {
        let (ours, wanted) = (scope(own.addr), scope(dst));
        // Rule 2: the smallest scope that reaches, else the widest.
        let reach = match ours >= wanted {
            true => 0x100 - u16::from(ours),
            false => u16::from(ours),
        };
        let is_preferred = own.state == AddressState::Preferred;
        let has_label = label(own.addr) == label(dst);
        // Rule 8 counts bits of the prefix only.
        let common = common_bits(own.addr, dst).min(u32::from(own.prefix_len));
        (reach, is_preferred, has_label, common)
    };
    let assigned = addresses.iter().filter(|own| own.is_assigned());
    let mut best: Option<&Ipv6Address> = None;
    for own in assigned {
        if best.is_none_or(|best| order(own) > order(best)) {
            best = Some(own);
        }
    }
    best.map(|own| own.addr)
}

/// The last 64 bits of an address in the network of `prefix`.
pub(super) fn interface_id(how: InterfaceId, mac: [u8; 6], prefix: Ipv6Addr, tries: u8) -> u64 {
    let [a, b, c, d, e, f] = mac;
    match how {
        InterfaceId::Eui64 => u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]),
        InterfaceId::Stable(secret) => {
            let network = (prefix.to_bits() >> 64) as u64;
            let name = u64::from_be_bytes([0, tries, a, b, c, d, e, f]);
            let id = Key(secret).hash(network, name);
            // RFC 5453: some are reserved, among them all ones but for a few bits.
            match id {
                0 | 0xfdff_ffff_ffff_ff80..=0xfdff_ffff_ffff_ffff => id ^ 1 << 40,
                id => id,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::Ipv6Config;

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    fn own(addr: &str, state: AddressState) -> Ipv6Address {
        Ipv6Address {
            addr: ip(addr),
            prefix_len: 64,
            state,
            origin: AddressOrigin::Static,
            preferred_until: Instant::NEVER,
            valid_until: Instant::NEVER,
            probes_left: 0,
            due: Instant::NEVER,
            nonce: [0; 6],
            tries: 0,
        }
    }

    #[test]
    fn the_source_reaches_is_not_deprecated_and_shares_most_bits() {
        let mut v6 = Ipv6::new(Ipv6Config::default());
        v6.addresses = [
            own("fe80::1", AddressState::Preferred),
            own("2001:db8:1::1", AddressState::Deprecated),
            own("2001:db8:2::1", AddressState::Preferred),
            own("2001:db8:f::1", AddressState::Tentative),
            own("fd00:1::1", AddressState::Preferred),
        ]
        .into();
        let source = |dst| v6.source_for(ip(dst));
        assert_eq!(source("fe80::9"), Some(ip("fe80::1")));
        assert_eq!(source("ff02::fb"), Some(ip("fe80::1")));
        assert_eq!(source("2001:db8:1::9"), Some(ip("2001:db8:2::1")));
        assert_eq!(source("2001:db8:f::9"), Some(ip("2001:db8:2::1")));
        assert_eq!(source("fd00:2::9"), Some(ip("fd00:1::1")));
        v6.addresses.truncate(1);
        assert_eq!(v6.source_for(ip("2001:db8::1")), Some(ip("fe80::1")));
        v6.addresses.clear();
        assert_eq!(v6.source_for(ip("fe80::9")), None);
    }

    #[test]
    fn an_identifier_of_the_station_is_rfc_4291s() {
        let id = interface_id(
            InterfaceId::Eui64,
            [0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde],
            ip("fe80::"),
            0,
        );
        assert_eq!(id, 0x3656_78ff_fe9a_bcde);
    }

    #[test]
    fn an_identifier_of_a_secret_is_stable_and_tells_nothing_elsewhere() {
        let how = InterfaceId::Stable([1, 2]);
        let mac = [2, 0, 0, 0, 0, 1];
        let id = |prefix, tries| interface_id(how, mac, ip(prefix), tries);
        assert_eq!(id("2001:db8:1::", 0), id("2001:db8:1::", 0));
        assert_ne!(id("2001:db8:1::", 0), id("2001:db8:2::", 0));
        assert_ne!(id("2001:db8:1::", 0), id("2001:db8:1::", 1));
    }

    #[test]
    fn an_address_grows_old() {
        let at = Instant::from_millis;
        let mut own = own("2001:db8::1", AddressState::Preferred);
        (own.preferred_until, own.valid_until) = (at(1000), at(2000));
        own.settle(at(0));
        assert_eq!((own.state, own.due), (AddressState::Preferred, at(1000)));
        own.settle(at(1000));
        assert_eq!((own.state, own.due), (AddressState::Deprecated, at(2000)));
        own.preferred_until = at(1500);
        own.settle(at(1100));
        assert_eq!((own.state, own.due), (AddressState::Preferred, at(1500)));
    }
}
