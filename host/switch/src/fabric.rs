//! Where a frame goes. No socket is known here: who asks is told by a call what to send where.
//!
//! | from a member's card | goes |
//! |---|---|
//! | a question for an address (ARP) | nowhere: the switch answers for members and itself; for the gateway to the member's way out |
//! | a question for a name, to the switch | nowhere: answered, or given to the host's resolver |
//! | IPv4, IPv6 to a member's station | to that member |
//! | IPv4 to another station | to the member's own way out, unless its address is the network's |
//! | to a group or to all | to all other members; DHCP to the member's own way out |
//!
//! What comes from a way out goes to its member only. A station or an address that is not the sender's is not let
//! through, so no member can speak for another; `guard6` says which addresses of IPv6 are whose.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use wire::{
    ArpOperation, ArpRepr, ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, Ipv4View, MacAddr,
    Protocol, UDP_HEADER_BYTES, UdpView,
};

use inet::SocketId;

use crate::counts::Drops;
use crate::dns_tcp::DNS_PORT;
use crate::names::{DATAGRAM_BYTES_MAX, STREAM_BYTES_MAX};
use crate::network::{Lease, Network};
use guard6::LinkLocals;
pub use name_server::Resolved;

const DHCP_SERVER_PORT: u16 = 67;

/// A member's number, which is never used again.
pub type MemberId = u64;

/// One end that frames come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A member's card.
    Card(MemberId),
    /// A member's way out.
    WayOut(MemberId),
}

/// A member.
#[derive(Clone, Debug)]
pub struct Station {
    /// Its names in small letters, the machine's first.
    pub names: Vec<String>,
    /// What it has.
    pub lease: Lease,
    /// Whether it is on other networks too, and asks for their names here.
    pub has_others: bool,
    /// Whether another network is its first one, so that its card's own station is of that.
    pub is_further: bool,
}

/// Who asked for a name that the host's resolver may know, and is to have its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The member.
    pub member: MemberId,
    /// The port that it asked from.
    pub port: u16,
    /// The connection, if it asked by TCP.
    pub stream: Option<SocketId>,
}

impl Client {
    /// The longest answer that it takes.
    pub fn answer_bytes_max(&self) -> usize {
        match self.stream {
            Some(_) => STREAM_BYTES_MAX,
            None => DATAGRAM_BYTES_MAX,
        }
    }
}

/// The members, and what was dropped between them.
#[derive(Debug)]
pub struct Fabric {
    network: Network,
    members: BTreeMap<MemberId, Station>,
    link_locals: LinkLocals,
    /// What went nowhere.
    pub drops: Drops,
}

/// Why a frame goes no further.
enum Dropped {
    Malformed,
    NotTheSenders,
    OfAnotherNetwork,
    Nobody,
    OtherProtocol,
}

/// A question that others may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered<'a> {
    /// Who asks.
    pub client: Client,
    /// The whole message.
    pub message: &'a [u8],
    /// Whether the other networks of who asks come before the host's resolver.
    pub has_others: bool,
}

/// What is left to be done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left<'a> {
    /// It has a question for others.
    Question(Unanswered<'a>),
    /// It is a segment for the name server ([`crate::dns_tcp`]).
    Segment(&'a [u8]),
}

type Passed<'a> = Result<Option<Left<'a>>, Dropped>;

impl Fabric {
    /// Without members.
    pub fn new(network: Network) -> Self {
        Self {
            network,
            members: BTreeMap::new(),
            link_locals: LinkLocals::default(),
            drops: Drops::default(),
        }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The members.
    pub fn members(&self) -> &BTreeMap<MemberId, Station> {
        &self.members
    }

    /// Lets a member in.
    pub fn add(&mut self, id: MemberId, station: Station) {
        self.members.insert(id, station);
    }

    /// Whether a member is on other networks too.
    pub fn set_has_others(&mut self, id: MemberId, has_others: bool) {
        if let Some(station) = self.members.get_mut(&id) {
            station.has_others = has_others;
        }
    }

    /// A member has left.
    pub fn remove(&mut self, id: MemberId) {
        self.members.remove(&id);
        self.link_locals.forget(id);
    }

    /// Whether a member has this address.
    pub fn is_taken(&self, address: Ipv4Addr) -> bool {
        self.member_with(address).is_some()
    }

    /// Passes a frame on: `send` is called for each port that is to have one. Returns what is left.
    pub fn forward<'a>(
        &mut self,
        from: Port,
        frame: &'a [u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Option<Left<'a>> {
        let passed = match from {
            Port::Card(id) => self.pass_card(id, frame, send),
            Port::WayOut(id) => self.pass_way_out(id, frame, send),
        };
        passed.unwrap_or_else(|dropped| {
            self.count(dropped);
            None
        })
    }

    fn count(&mut self, dropped: Dropped) {
        *match dropped {
            Dropped::Malformed => &mut self.drops.malformed,
            Dropped::NotTheSenders => &mut self.drops.not_the_senders,
            Dropped::OfAnotherNetwork => &mut self.drops.of_other_networks,
            Dropped::Nobody => &mut self.drops.nobody,
            Dropped::OtherProtocol => &mut self.drops.other_protocol,
        } += 1;
    }

    /// What a member says of itself when nobody asked (RFC 5227, 3).
    pub fn announcement(&self, id: MemberId) -> Option<Vec<u8>> {
        let lease = self.members.get(&id)?.lease;
        let announced = ArpRepr {
            operation: ArpOperation::Request,
            sender_mac: MacAddr(lease.mac),
            sender_ip: lease.address,
            target_mac: MacAddr::default(),
            target_ip: lease.address,
        };
        Some(arp_frame(MacAddr::BROADCAST, &announced))
    }

    fn pass_card<'a>(
        &mut self,
        id: MemberId,
        frame: &'a [u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Passed<'a> {
        let Station {
            lease, is_further, ..
        } = self.members.get(&id).ok_or(Dropped::Nobody)?;
        let (lease, is_further) = (*lease, *is_further);
        let ether = EthernetRepr::parse(frame).map_err(|_| Dropped::Malformed)?;
        if ether.src.0 != lease.mac {
            let is_of_another = is_further || self.network.is_of_another(ether.src);
            return Err(match is_of_another {
                true => Dropped::OfAnotherNetwork,
                false => Dropped::NotTheSenders,
            });
        }
        let payload = frame.get(ETHERNET_HEADER_BYTES..).unwrap_or_default();
        match ether.ether_type {
            EtherType::Arp => self.arp(id, frame, payload, send)?,
            EtherType::Ipv4 => return self.ipv4(id, &lease, &ether, frame, send),
            EtherType::Ipv6 if self.network.alone.is_some() => send(Port::WayOut(id), frame),
            EtherType::Ipv6 => {
                self.check_ipv6(id, payload)?;
                self.to_members(id, ether.dst, frame, send)?;
            }
            EtherType::Other(_) => return Err(Dropped::OtherProtocol),
        }
        Ok(None)
    }

    /// Questions are answered here; answers are for the member's way out, which asks too.
    fn arp(
        &self,
        id: MemberId,
        frame: &[u8],
        payload: &[u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Result<(), Dropped> {
        let arp = ArpRepr::parse(payload).map_err(|_| Dropped::Malformed)?;
        let own = self.members.get(&id).ok_or(Dropped::Nobody)?;
        let claims = [Ipv4Addr::UNSPECIFIED, own.lease.address];
        if !claims.contains(&arp.sender_ip) || arp.sender_mac.0 != own.lease.mac {
            return Err(Dropped::NotTheSenders);
        }
        let is_about_self = arp.target_ip == own.lease.address;
        let is_for_way_out =
            arp.operation == ArpOperation::Reply || arp.target_ip == self.network.gateway();
        if is_for_way_out && !is_about_self {
            send(Port::WayOut(id), frame);
            return Ok(());
        }
        if is_about_self {
            // It tells all who it is; nobody else has that address.
            return Ok(());
        }
        let station = self.station_of(arp.target_ip).ok_or(Dropped::Nobody)?;
        send(Port::Card(id), &arp_reply(&arp, station));
        Ok(())
    }

    /// The station of an address: a member's, or the switch's own.
    pub fn station_of(&self, address: Ipv4Addr) -> Option<MacAddr> {
        if address == self.network.name_server() {
            return Some(self.network.switch_station());
        }
        let (_, member) = self.member_with(address)?;
        Some(MacAddr(member.lease.mac))
    }

    fn ipv4<'a>(
        &self,
        id: MemberId,
        own: &Lease,
        ether: &EthernetRepr,
        frame: &'a [u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Passed<'a> {
        let packet = frame.get(ETHERNET_HEADER_BYTES..).unwrap_or_default();
        let ip = Ipv4View::parse(packet, packet.len()).map_err(|_| Dropped::Malformed)?;
        let udp = udp_of(&ip, packet);
        let to = udp.map(|(udp, _)| udp.dst_port());
        if ether.dst.is_multicast() && to == Some(DHCP_SERVER_PORT) {
            send(Port::WayOut(id), frame);
            return Ok(None);
        }
        if ip.src() != own.address {
            return Err(Dropped::NotTheSenders);
        }
        if ip.dst() == self.network.name_server() {
            if is_of_name_server_by_tcp(&ip, packet) {
                return Ok(Some(Left::Segment(frame)));
            }
            let (udp, message) = udp
                .filter(|_| to == Some(DNS_PORT))
                .ok_or(Dropped::Nobody)?;
            let client = Client {
                member: id,
                port: udp.src_port(),
                stream: None,
            };
            return self.question(client, message, send);
        }
        match self.to_members(id, ether.dst, frame, send) {
            Err(_) if !self.network.contains(ip.dst()) || ip.dst() == self.network.gateway() => {
                send(Port::WayOut(id), frame);
            }
            outcome => outcome?,
        }
        Ok(None)
    }

    /// To the member with that station, or to all others.
    fn to_members(
        &self,
        from: MemberId,
        dst: MacAddr,
        frame: &[u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Result<(), Dropped> {
        let others = self.members.iter().filter(|(id, _)| **id != from);
        if dst.is_multicast() {
            others.for_each(|(id, _)| send(Port::Card(*id), frame));
            return Ok(());
        }
        let mut others = others.filter(|(_, station)| station.lease.mac == dst.0);
        let (id, _) = others.next().ok_or(Dropped::Nobody)?;
        send(Port::Card(*id), frame);
        Ok(())
    }

    /// IPv4 and questions for its addresses; of IPv6 there is no way out.
    fn pass_way_out<'a>(
        &self,
        id: MemberId,
        frame: &'a [u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Passed<'a> {
        let ether = EthernetRepr::parse(frame).map_err(|_| Dropped::Malformed)?;
        let own = self.members.get(&id).ok_or(Dropped::Nobody)?;
        match ether.ether_type {
            EtherType::Arp | EtherType::Ipv4 => {}
            _ => return Err(Dropped::OtherProtocol),
        }
        if ether.dst.0 != own.lease.mac && !ether.dst.is_multicast() {
            return Err(Dropped::Nobody);
        }
        send(Port::Card(id), frame);
        Ok(None)
    }

    /// Who has an address.
    pub fn member_with(&self, address: Ipv4Addr) -> Option<(&MemberId, &Station)> {
        let mut members = self.members.iter();
        members.find(|(_, station)| station.lease.address == address)
    }
}

/// Whether a packet is a segment for port 53. One in fragments is none: TCP makes no such.
fn is_of_name_server_by_tcp(ip: &Ipv4View, packet: &[u8]) -> bool {
    if ip.protocol() != Protocol::Tcp || ip.is_fragment() {
        return false;
    }
    let ports = packet
        .get(ip.header().len()..)
        .and_then(<[u8]>::first_chunk);
    ports.is_some_and(|[_, _, high, low]| u16::from_be_bytes([*high, *low]) == DNS_PORT)
}

/// The datagram of an IPv4 packet that is whole.
fn udp_of<'a>(ip: &Ipv4View, packet: &'a [u8]) -> Option<(UdpView<'a>, &'a [u8])> {
    if ip.protocol() != Protocol::Udp || ip.is_fragment() {
        return None;
    }
    let datagram = packet.get(ip.header().len()..ip.total_len())?;
    let udp = UdpView::parse(datagram, datagram.len()).ok()?;
    Some((udp, datagram.get(UDP_HEADER_BYTES..udp.len())?))
}

/// The frame in which `station` answers a question for it.
pub(crate) fn arp_reply(question: &ArpRepr, station: MacAddr) -> Vec<u8> {
    let reply = ArpRepr {
        operation: ArpOperation::Reply,
        sender_mac: station,
        sender_ip: question.target_ip,
        target_mac: question.sender_mac,
        target_ip: question.sender_ip,
    };
    arp_frame(question.sender_mac, &reply)
}

fn arp_frame(dst: MacAddr, arp: &ArpRepr) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_HEADER_BYTES + ArpRepr::BYTES];
    let ether = EthernetRepr {
        dst,
        src: arp.sender_mac,
        ether_type: EtherType::Arp,
    };
    ether.emit(&mut frame);
    if let Some(payload) = frame.get_mut(ETHERNET_HEADER_BYTES..) {
        arp.emit(payload);
    }
    frame
}

mod guard6;
mod name_server;
#[cfg(test)]
mod tests;
