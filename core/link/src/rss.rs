//! Receive-side scaling: which bucket, and so which ring, a packet belongs to.
//!
//! All frames of one flow have one hash, so they have one bucket and one ring, in order.
//! Later fragments carry no ports, so fragments hash on addresses alone, and so does
//! every protocol that may be fragmented: a UDP flow that sends a large datagram among
//! small ones would otherwise lie on two rings. TCP avoids fragments, so it hashes on
//! ports too. The hash on addresses alone does not care which is which: both directions
//! of a fragmented exchange meet on one CPU.
//!
//! Invariant: a hash uses no field that varies within a flow.

use core::net::IpAddr;

use crate::headers::{ICMP6, Packet, Piece, TCP, UDP};
use crate::toeplitz::{Key, Toeplitz};

/// Entries of an indirection table.
pub const BUCKETS: usize = 128;
const _: () = assert!(BUCKETS.is_power_of_two(), "a hash is masked");

/// For which protocols ports are hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortFields {
    /// TCP.
    pub tcp: bool,
    /// UDP; only where no flow mixes fragments and whole datagrams.
    pub udp: bool,
}

impl Default for PortFields {
    fn default() -> Self {
        Self {
            tcp: true,
            udp: false,
        }
    }
}

/// How packets become hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rss {
    /// The hash's key.
    pub key: Key,
    /// What is hashed.
    pub ports: PortFields,
    /// Of which packets; all others hash to 0.
    pub scope: Scope,
}

/// Which packets have a hash of their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Scope {
    /// Those of both families.
    #[default]
    Ip,
    /// Those from one host to another, or to all of an IPv4 network: not packets to groups, nor
    /// whole messages of ICMPv6, which are more of the link than of a flow.
    Unicast,
}

impl Default for Rss {
    fn default() -> Self {
        Self {
            key: Key::MICROSOFT,
            ports: PortFields::default(),
            scope: Scope::default(),
        }
    }
}

/// Hashes packets by one rule.
#[derive(Clone, Debug)]
pub struct Hasher {
    ports: PortFields,
    scope: Scope,
    toeplitz: Toeplitz,
}

impl Scope {
    fn has(self, packet: &Packet) -> bool {
        match self {
            Self::Ip => true,
            // A piece of a message does not say what it is of, so that all pieces hash alike.
            Self::Unicast if packet.protocol == ICMP6 && packet.piece == Piece::Whole => false,
            Self::Unicast => ![packet.src, packet.dst].iter().any(IpAddr::is_multicast),
        }
    }
}

impl Hasher {
    /// By `rss`.
    pub fn new(rss: &Rss) -> Self {
        Self {
            ports: rss.ports,
            scope: rss.scope,
            toeplitz: Toeplitz::new(&rss.key),
        }
    }

    /// The hash of a packet; 0 for what is no IP, or out of scope.
    pub fn hash(&self, packet: Option<&Packet>) -> u32 {
        let Some(packet) = packet.filter(|packet| self.scope.has(packet)) else {
            return 0;
        };
        let wants_ports = match packet.protocol {
            TCP => self.ports.tcp,
            UDP => self.ports.udp,
            _ => false,
        };
        match packet.ports {
            Some(ports) if wants_ports && packet.piece == Piece::Whole => {
                self.of_connection(packet, ports)
            }
            _ => self.of_hosts(packet),
        }
    }

    fn of_connection(&self, packet: &Packet, (src, dst): (u16, u16)) -> u32 {
        let ports = src.to_be_bytes().into_iter().chain(dst.to_be_bytes());
        match (packet.src, packet.dst) {
            (IpAddr::V4(a), IpAddr::V4(b)) => self
                .toeplitz
                .hash(a.octets().into_iter().chain(b.octets()).chain(ports)),
            (IpAddr::V6(a), IpAddr::V6(b)) => self
                .toeplitz
                .hash(a.octets().into_iter().chain(b.octets()).chain(ports)),
            _ => 0,
        }
    }

    /// The same in both directions.
    fn of_hosts(&self, packet: &Packet) -> u32 {
        let low = packet.src.min(packet.dst);
        let high = packet.src.max(packet.dst);
        match (low, high) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                self.toeplitz.hash(a.octets().into_iter().chain(b.octets()))
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                self.toeplitz.hash(a.octets().into_iter().chain(b.octets()))
            }
            _ => 0,
        }
    }
}

/// The bucket of a hash.
pub const fn bucket_of(hash: u32) -> usize {
    hash as usize & (BUCKETS - 1)
}

/// Which target each bucket leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Indirection([u16; BUCKETS]);

impl Indirection {
    /// Buckets over `targets` (at least one) in turn.
    pub fn even(targets: u16) -> Self {
        let targets = targets.max(1);
        Self(core::array::from_fn(|bucket| bucket as u16 % targets))
    }

    /// Where a bucket leads.
    pub fn target(&self, bucket: usize) -> u16 {
        self.0[bucket % BUCKETS]
    }

    /// Leads a bucket elsewhere.
    pub fn set(&mut self, bucket: usize, target: u16) {
        self.0[bucket % BUCKETS] = target;
    }

    /// The entries, as a card is told.
    pub fn entries(&self) -> &[u16; BUCKETS] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(src: &str, sport: u16, dst: &str, dport: u16) -> Packet {
        Packet {
            src: src.parse().expect("an address"),
            dst: dst.parse().expect("an address"),
            protocol: TCP,
            piece: Piece::Whole,
            ports: Some((sport, dport)),
            dsfield: 0,
            transport_at: 34,
        }
    }

    #[test]
    fn what_is_out_of_scope_hashes_to_0() {
        let hasher = Hasher::new(&Rss {
            scope: Scope::Unicast,
            ..Rss::default()
        });
        let hash = |src, dst| hasher.hash(Some(&packet(src, 1, dst, 2)));
        assert_eq!(hash("10.0.2.2", "224.0.0.251"), 0);
        assert_eq!(hash("fe80::2", "ff02::fb"), 0);
        assert_ne!(hash("10.0.2.2", "10.0.2.15"), 0);
        assert_ne!(hash("2001:db8::1", "2001:db8::2"), 0);
        assert_ne!(hash("fe80::1", "fe80::2"), 0);
        let message = Packet {
            protocol: ICMP6,
            ports: None,
            ..packet("fe80::1", 0, "fe80::2", 0)
        };
        assert_eq!(hasher.hash(Some(&message)), 0);
        let piece = Packet {
            piece: Piece::First,
            ..message
        };
        assert_ne!(hasher.hash(Some(&piece)), 0);
    }

    #[test]
    fn a_key_of_16_bits_period_hashes_both_directions_of_either_family_alike() {
        let key = Key(core::array::from_fn(|at| [0x6d, 0x5a][at % 2]));
        let scope = Scope::Unicast;
        let hasher = Hasher::new(&Rss {
            key,
            scope,
            ..Rss::default()
        });
        let mut buckets = alloc::collections::BTreeSet::new();
        for (host, peer) in [("10.0.2.15", "10.0.2.2"), ("2001:db8::1", "2001:db8:9::2")] {
            for port in 32768..32868 {
                let there = hasher.hash(Some(&packet(host, port, peer, 6379)));
                let back = hasher.hash(Some(&packet(peer, 6379, host, port)));
                assert_eq!(there, back, "{host} {port}");
                buckets.insert((host, bucket_of(there)));
            }
        }
        assert!(buckets.len() > 60, "ports are spread: {}", buckets.len());
    }

    /// Destination, source, hash of addresses, hash with ports: Microsoft's table.
    const VECTORS: [(&str, u16, &str, u16, u32, u32); 8] = [
        (
            "161.142.100.80",
            1766,
            "66.9.149.187",
            2794,
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "65.69.140.83",
            4739,
            "199.92.111.2",
            14230,
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "12.22.207.184",
            38024,
            "24.19.198.95",
            12898,
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "209.142.163.6",
            2217,
            "38.27.205.30",
            48228,
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "202.188.127.2",
            1303,
            "153.39.163.191",
            44251,
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "3ffe:2501:200:3::1",
            1766,
            "3ffe:2501:200:1fff::7",
            2794,
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "ff02::1",
            4739,
            "3ffe:501:8::260:97ff:fe40:efab",
            14230,
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    fn octets(addr: IpAddr) -> alloc::vec::Vec<u8> {
        match addr {
            IpAddr::V4(addr) => addr.octets().to_vec(),
            IpAddr::V6(addr) => addr.octets().to_vec(),
        }
    }

    #[test]
    fn the_hash_is_microsofts_on_the_published_vectors() {
        let rss = Hasher::new(&Rss::default());
        for (dst, dport, src, sport, hosts, connection) in VECTORS {
            let packet = packet(src, sport, dst, dport);
            assert_eq!(rss.hash(Some(&packet)), connection, "{src} to {dst}");
            let addresses = octets(packet.src).into_iter().chain(octets(packet.dst));
            assert_eq!(rss.toeplitz.hash(addresses), hosts, "{src} to {dst}");
        }
    }

    #[test]
    fn all_fragments_and_both_directions_of_an_exchange_have_one_hash() {
        let rss = Hasher::new(&Rss::default());
        let first = Packet {
            protocol: UDP,
            piece: Piece::First,
            ..packet("10.0.0.1", 1, "10.0.0.2", 2)
        };
        let later = Packet {
            piece: Piece::Later,
            ports: None,
            ..first
        };
        let whole = Packet {
            piece: Piece::Whole,
            ..first
        };
        let answer = Packet {
            src: first.dst,
            dst: first.src,
            ports: Some((2, 1)),
            ..whole
        };
        let hash = rss.hash(Some(&first));
        assert_ne!(hash, 0);
        for other in [later, whole, answer] {
            assert_eq!(rss.hash(Some(&other)), hash, "{other:?}");
        }
    }

    #[test]
    fn an_even_table_uses_every_target_equally() {
        let table = Indirection::even(4);
        for target in 0..4 {
            let buckets = table.entries().iter().filter(|entry| **entry == target);
            assert_eq!(buckets.count(), BUCKETS / 4);
        }
    }
}
