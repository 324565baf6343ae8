//! Which packets: a box over the two ends' addresses and ports, and the protocol.

use core::fmt;
use core::net::IpAddr;

use crate::headers::{Packet, Piece, SCTP, TCP, UDP};
use crate::prefix::IpPrefix;

/// Ports from one to another one; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// `None` if there is none between them.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The first and the last.
    pub fn range(self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// All that there are: a packet without ports is still in none.
    const ALL: Self = Self {
        first: 0,
        last: u16::MAX,
    };

    fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// One end of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Its address begins so.
    pub address: IpPrefix,
    /// Its port is one of these; without them it may have none.
    pub ports: Option<Ports>,
}

/// Why something is no predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadPredicate {
    /// The ends are of two families.
    TwoFamilies,
    /// Ports are named of a protocol that has none, or of any.
    PortsWithoutProtocol,
}

/// See the module. Either both ends name ports or none does, so that a predicate is a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predicate {
    local: Ends,
    peer: Ends,
    protocol: Option<u8>,
}

/// How the packets of one predicate lie to those of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// No packet is in both.
    Apart,
    /// They are the same.
    Equal,
    /// All of these are among the others, and not the other way round.
    Inside,
    /// The other way round.
    Around,
    /// Some are in both, and each has some of its own.
    Crossing,
}

impl Predicate {
    /// Packets between `local`, our side, and `peer`, of one protocol or of any.
    pub fn new(local: Ends, peer: Ends, protocol: Option<u8>) -> Result<Self, BadPredicate> {
        if local.address.addr().is_ipv4() != peer.address.addr().is_ipv4() {
            return Err(BadPredicate::TwoFamilies);
        }
        let names_ports = local.ports.is_some() || peer.ports.is_some();
        if names_ports && !matches!(protocol, Some(TCP | UDP | SCTP)) {
            return Err(BadPredicate::PortsWithoutProtocol);
        }
        let with_ports = |end: Ends| Ends {
            ports: end.ports.or(names_ports.then_some(Ports::ALL)),
            ..end
        };
        Ok(Self {
            local: with_ports(local),
            peer: with_ports(peer),
            protocol,
        })
    }

    /// Our end and the peer's.
    pub fn ends(&self) -> (Ends, Ends) {
        (self.local, self.peer)
    }

    /// The protocol, if it is one only.
    pub fn protocol(&self) -> Option<u8> {
        self.protocol
    }

    /// Our addresses.
    pub fn local(&self) -> IpPrefix {
        self.local.address
    }

    /// Whether an address may be our peer's.
    pub(super) fn is_peer(&self, addr: IpAddr) -> bool {
        self.peer.address.contains(addr)
    }

    /// Whether it admits a packet that is received.
    pub fn admits_received(&self, packet: &Packet) -> bool {
        self.admits_sent(&packet.reversed())
    }

    /// Whether it admits a packet that is sent.
    pub fn admits_sent(&self, packet: &Packet) -> bool {
        let whole = packet.ports.filter(|_| packet.piece == Piece::Whole);
        self.protocol.is_none_or(|only| only == packet.protocol)
            && self
                .local
                .admits(packet.src, whole.map(|(source, _)| source))
            && self
                .peer
                .admits(packet.dst, whole.map(|(_, target)| target))
    }

    /// How this lies to another one.
    pub fn relation(&self, other: &Self) -> Relation {
        let protocol = match (self.protocol, other.protocol) {
            (one, two) if one == two => Relation::Equal,
            (Some(_), None) => Relation::Inside,
            (None, Some(_)) => Relation::Around,
            _ => Relation::Apart,
        };
        let fields = [
            protocol,
            self.local.address_relation(&other.local),
            self.peer.address_relation(&other.peer),
            self.local.ports_relation(&other.local),
            self.peer.ports_relation(&other.peer),
        ];
        fields.into_iter().fold(Relation::Equal, Relation::and)
    }

    /// Whether both may be receive predicates of one link.
    pub fn may_stand_beside(&self, other: &Self) -> bool {
        !matches!(self.relation(other), Relation::Equal | Relation::Crossing)
    }
}

impl Ends {
    fn admits(&self, addr: IpAddr, port: Option<u16>) -> bool {
        let is_among = |ports: Ports| port.is_some_and(|port| ports.contains(port));
        self.address.contains(addr) && self.ports.is_none_or(is_among)
    }

    fn address_relation(&self, other: &Self) -> Relation {
        let (one, two) = (self.address, other.address);
        let holds = |outer: IpPrefix, inner: IpPrefix| {
            outer.len() <= inner.len() && outer.contains(inner.addr())
        };
        Relation::of(holds(two, one), holds(one, two), || true)
    }

    fn ports_relation(&self, other: &Self) -> Relation {
        match (self.ports, other.ports) {
            (None, None) => Relation::Equal,
            (Some(_), None) => Relation::Inside,
            (None, Some(_)) => Relation::Around,
            (Some(one), Some(two)) => {
                let holds = |outer: Ports, inner: Ports| {
                    outer.contains(inner.first) && outer.contains(inner.last)
                };
                let are_apart = || one.last < two.first || two.last < one.first;
                Relation::of(holds(two, one), holds(one, two), are_apart)
            }
        }
    }
}

impl Relation {
    fn of(is_inside: bool, is_around: bool, are_apart: impl Fn() -> bool) -> Self {
        match (is_inside, is_around) {
            (true, true) => Self::Equal,
            (true, false) => Self::Inside,
            (false, true) => Self::Around,
            (false, false) if are_apart() => Self::Apart,
            (false, false) => Self::Crossing,
        }
    }

    /// Of two boxes, of which these are the relations of two sides.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Apart, _) | (_, Self::Apart) => Self::Apart,
            (Self::Equal, one) | (one, Self::Equal) => one,
            (one, two) if one == two => one,
            _ => Self::Crossing,
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// In the words of `flowadm`; what is not looked at is not written.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local_ip={}", self.local.address)?;
        match self.protocol {
            None => {}
            Some(TCP) => f.write_str(",transport=tcp")?,
            Some(UDP) => f.write_str(",transport=udp")?,
            Some(SCTP) => f.write_str(",transport=sctp")?,
            Some(other) => write!(f, ",transport={other}")?,
        }
        let is_told = |ports: &Ports| *ports != Ports::ALL;
        // One of the ends says that there must be some.
        let says_so = !self.peer.ports.as_ref().is_some_and(is_told);
        if let Some(ports) = self.local.ports.filter(|ports| says_so || is_told(ports)) {
            write!(f, ",local_port={ports}")?;
        }
        if !self.peer.address.is_empty() {
            write!(f, ",remote_ip={}", self.peer.address)?;
        }
        if let Some(ports) = self.peer.ports.filter(is_told) {
            write!(f, ",remote_port={ports}")?;
        }
        Ok(())
    }
}
