//! What a network is: its addresses, and what each member has of them.
//!
//! Of a network's addresses the first is the switch's, which answers questions for names; the last but the broadcast address is the
//! gateway's, behind which each member has a way out of its own; the others are for members.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use wire::MacAddr;

/// The shortest and the longest prefix: room for some members, and for not too many.
pub(crate) const PREFIX_LENS: std::ops::RangeInclusive<u8> = 16..=28;

/// How the stations of members begin; their addresses follow.
const STATIONS: [u8; 2] = [0x02, 0x42];

/// A network, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Its first address, which nobody has.
    pub subnet: Ipv4Addr,
    /// How many bits of it are the network's.
    pub prefix_len: u8,
    /// The first 64 bits of its IPv6 addresses, if it has such.
    pub prefix6: Option<Ipv6Addr>,
    /// When it was made, in seconds since the epoch.
    pub created_s: u64,
    /// If it is one machine's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
}

/// What a machine that is alone with its way out has had of that, and keeps: it does not notice that there is a switch
/// between them. The way out may lead IPv6, too, and knows names without a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// Whom it asks for names.
    pub name_server: Ipv4Addr,
    /// Where its way out is.
    pub gateway: Ipv4Addr,
    /// Its card's station.
    pub mac: [u8; 6],
}

/// What a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its IPv6 address, on a network of 64 bits.
    pub address6: Option<Ipv6Addr>,
    /// Its card's station.
    pub mac: [u8; 6],
}

impl Network {
    /// Whether addresses can be given out of `subnet`.
    ///
    /// Errors: a sentence.
    pub fn check_subnet(subnet: Ipv4Addr, prefix_len: u8) -> Result<(), String> {
        let has_rest = |bits: u8| u32::from(subnet).unbounded_shl(bits.into()) != 0;
        match prefix_len {
            len if !PREFIX_LENS.contains(&len) => Err(format!(
                "A network has a prefix of 16 to 28 bits, not {len}."
            )),
            len if has_rest(len) => {
                let first = u32::from(subnet) & (u32::MAX << (32 - len));
                Err(format!(
                    "{subnet}/{len} is an address in a network: give {}/{len}.",
                    Ipv4Addr::from(first)
                ))
            }
            _ if subnet.is_multicast() || subnet.is_loopback() || subnet.is_unspecified() => {
                Err(format!("{subnet} is no network for machines."))
            }
            _ => Ok(()),
        }
    }

    /// The switch, which knows the names.
    pub fn name_server(&self) -> Ipv4Addr {
        let usual = || self.numbered(1);
        self.alone.map_or_else(usual, |alone| alone.name_server)
    }

    /// Where the way out is.
    pub fn gateway(&self) -> Ipv4Addr {
        let usual = || self.numbered(self.size() - 2);
        self.alone.map_or_else(usual, |alone| alone.gateway)
    }

    /// The switch's own station.
    pub fn switch_station(&self) -> MacAddr {
        station(self.name_server())
    }

    /// The addresses for members, lowest first.
    pub fn member_addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        (2..self.size() - 2).map(|number| self.numbered(number))
    }

    /// Whether a member may have it.
    pub fn is_for_members(&self, address: Ipv4Addr) -> bool {
        self.contains(address) && (2..self.size() - 2).contains(&self.number(address))
    }

    /// Whether it is of this network.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let rest = 32 - u32::from(self.prefix_len);
        u32::from(address) >> rest == u32::from(self.subnet) >> rest
    }

    /// Whether an address is of both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.subnet) || other.contains(self.subnet)
    }

    /// What the member with `address` has.
    pub fn lease(&self, address: Ipv4Addr) -> Lease {
        let number = u128::from(self.number(address));
        let address6 = self.prefix6.map(u128::from);
        Lease {
            address,
            address6: address6.map(|prefix| Ipv6Addr::from(prefix | number)),
            mac: self.alone.map_or(station(address).0, |alone| alone.mac),
        }
    }

    /// Errors: a sentence, if no member may have `address`.
    pub fn check_member(&self, address: Ipv4Addr) -> Result<(), String> {
        match self.is_for_members(address) {
            true => Ok(()),
            false => Err(format!(
                "{address} is not for machines of the network {}, which is {}/{}.",
                self.name, self.subnet, self.prefix_len
            )),
        }
    }

    /// Whether the station is that of an address of another network.
    pub(crate) fn is_of_another(&self, mac: MacAddr) -> bool {
        let [x, y, a, b, c, d] = mac.0;
        [x, y] == STATIONS && !self.contains(Ipv4Addr::new(a, b, c, d))
    }

    /// Addresses, those with a meaning of their own included.
    fn size(&self) -> u32 {
        1 << (32 - u32::from(self.prefix_len))
    }

    fn number(&self, address: Ipv4Addr) -> u32 {
        u32::from(address) & (self.size() - 1)
    }

    fn numbered(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.subnet) + number)
    }
}

/// The station of who has `address`: locally administered, and as docker makes it.
fn station(address: Ipv4Addr) -> MacAddr {
    let ([x, y], [a, b, c, d]) = (STATIONS, address.octets());
    MacAddr([x, y, a, b, c, d])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn network() -> Network {
        Network {
            name: "back".into(),
            subnet: Ipv4Addr::new(10, 89, 3, 0),
            prefix_len: 24,
            prefix6: Some("fd00:1:2:3::".parse().expect("an address")),
            created_s: 0,
            alone: None,
        }
    }

    #[test]
    fn addresses_with_a_meaning_of_their_own_are_nobodys() {
        let network = network();
        let members: Vec<_> = network.member_addresses().collect();
        assert_eq!(members.len(), 252);
        assert!(members.iter().all(|own| network.is_for_members(*own)));
        for own in [network.name_server(), network.gateway(), network.subnet] {
            assert!(!members.contains(&own) && !network.is_for_members(own));
        }
        assert_eq!(network.gateway(), Ipv4Addr::new(10, 89, 3, 254));
        let lease = network.lease(members[0]);
        assert_eq!(lease.mac, [2, 0x42, 10, 89, 3, 2]);
        assert_eq!(lease.address6, "fd00:1:2:3::2".parse().ok());
    }

    #[test]
    fn a_subnet_is_refused_with_what_would_do() {
        let check = |text: &str, len| Network::check_subnet(text.parse().expect("it is"), len);
        assert_eq!(check("10.89.3.0", 24), Ok(()));
        assert!(check("10.89.3.7", 24).is_err_and(|words| words.contains("10.89.3.0/24")));
        assert!(check("10.0.0.0", 8).is_err());
        assert!(check("10.0.0.0", 30).is_err());
        assert!(check("224.0.0.0", 24).is_err());
    }

    #[test]
    fn networks_overlap_if_one_lies_in_the_other() {
        let (small, large) = (
            network(),
            Network {
                subnet: Ipv4Addr::new(10, 89, 0, 0),
                prefix_len: 16,
                ..network()
            },
        );
        assert!(small.overlaps(&large) && large.overlaps(&small));
        let beside = Network {
            subnet: Ipv4Addr::new(10, 89, 4, 0),
            ..network()
        };
        assert!(!small.overlaps(&beside) && !beside.overlaps(&small));
    }
}
