//! Which shard a frame belongs to.
//!
//! A connection belongs to the shard that a hash of its two ends names. The hash is the
//! one that cards use for their rings (Toeplitz), so a card that is told the key brings
//! each frame to the right CPU; where the card steers in another way, a frame that came
//! to a wrong ring is handed over (`inbox`). Either way a connection stays where it is.
//!
//! The key has a period of 16 bits, which makes the hash the same in both directions (Woo
//! and Park, "Scalable TCP Session Monitoring with Symmetric Receive-side Scaling"): both
//! ends of a connection to ourselves lie in one shard.
//!
//! What does not show its connection by that hash goes where `link::dispatch` says: an ICMP
//! error where the quoted packet came from, DHCP's answers to the first shard, whose
//! client asked. ARP and neighbour discovery go to the first shard, which answers; the others
//! get a copy that teaches them. A fragment of a TCP segment is dropped and counted.
//!
//! What never leaves loopback is not the card's: it is spread over all shards, those without a
//! ring too ([`crate::stack::loopback`]).
//!
//! The first shard, to which the hash 0 leads, also has all packets to groups, and what else
//! ICMPv6 says: it runs IPv6 for the card, and the others follow it (`inet::Ipv6Snapshot`).

use core::net::IpAddr;
use core::sync::atomic::{AtomicU16, Ordering};

use inet::Endpoint;
use link::dispatch;
use link::rss::{BUCKETS, Hasher, Indirection, PortFields, Rss, Scope, bucket_of};
use link::toeplitz::{KEY_BYTES, Key};
use link::{Header, Packet, Piece};
use mach::sync::Once;
use mbuf::{Chain, Checksum, RxFrame};
use wire::{ETHERNET_HEADER_BYTES, EtherType};

/// The key whose distribution Woo and Park measured.
const KEY_PERIOD: [u8; 2] = [0x6d, 0x5a];
/// An IP header with all options or some extension headers, and the ports behind it.
const PACKET_HEAD_BYTES: usize = 128;
/// The first four bits of a packet of IPv6.
const VERSION_6: u8 = 6;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// What leads the card's frames to shards; never changes.
struct Steer {
    hasher: Hasher,
    table: Indirection,
}

/// The rule is the card's, of which there is one; the shards are the first stack's.
static STEER: Once<Steer> = Once::new();

/// Spreads flows evenly over this many shards.
pub(crate) fn init(shards: u16) {
    STEER.call_once(|| Steer {
        hasher: Hasher::new(&rss()),
        table: Indirection::even(shards),
    });
}

/// The rule, for whoever sorts frames.
pub(crate) fn rss() -> Rss {
    Rss {
        key: Key(key()),
        ports: PortFields::default(),
        scope: Scope::Unicast,
    }
}

fn key() -> [u8; KEY_BYTES] {
    core::array::from_fn(|at| KEY_PERIOD[at % 2])
}

/// Tells a card the rule; one that has no such hash goes on to steer as it likes.
pub(crate) fn tell(control: &mut dyn hal::NicControl, shards: u16) {
    let table = Indirection::even(shards);
    let table: [u16; BUCKETS] = core::array::from_fn(|bucket| table.target(bucket));
    let rule = hal::SpreadRule {
        key: &key(),
        table: &table,
        ipv6: true,
        tcp_ports: rss().ports.tcp,
        udp_ports: rss().ports.udp,
    };
    let _ = control.spread(0, &rule);
}

/// How many shards of the first stack, the only one with several, serve loopback.
static LOOPBACK_SHARDS: AtomicU16 = AtomicU16::new(1);

/// Spreads what stays within loopback over this many shards.
pub(crate) fn init_loopback(shards: u16) {
    LOOPBACK_SHARDS.store(shards, Ordering::Relaxed);
}

/// The shard in which a datagram within loopback arrives: that of its receiver, so that a
/// socket hears in their order all that it is sent.
#[inline]
pub fn owner_of_port(port: u16) -> u16 {
    port % LOOPBACK_SHARDS.load(Ordering::Relaxed)
}

/// The shard of whatever a packet belongs to.
pub(crate) fn owner(packet: &Packet) -> u16 {
    STEER.get().map_or(0, |steer| {
        let hash = steer.hasher.hash(Some(packet));
        steer.table.target(bucket_of(hash))
    })
}

/// The shard of a packet from its IP header on.
pub(crate) fn owner_of_packet(packet: &Chain) -> u16 {
    let mut frame = [0; ETHERNET_HEADER_BYTES + PACKET_HEAD_BYTES];
    let (header, head) = frame.split_at_mut(ETHERNET_HEADER_BYTES);
    let shown = ETHERNET_HEADER_BYTES + packet.copy_to_slice(0, head);
    let ether_type = match head[0] >> 4 {
        VERSION_6 => EtherType::Ipv6,
        _ => EtherType::Ipv4,
    };
    header[12..].copy_from_slice(&ether_type.number().to_be_bytes());
    let frame = &frame[..shown];
    let len = ETHERNET_HEADER_BYTES + packet.len();
    let packet = Header::parse(frame).and_then(|header| Packet::parse(&header, frame, len));
    packet.map_or(0, |packet| owner_to_ourselves(&packet))
}

fn owner_to_ourselves(packet: &Packet) -> u16 {
    let is_within = packet.src.is_loopback() && packet.dst.is_loopback();
    let is_within = is_within && packet.piece == Piece::Whole;
    let ports = packet.ports.filter(|_| is_within);
    let within = ports.and_then(|ports| owner_within_loopback(packet.protocol, ports));
    within.unwrap_or_else(|| owner(packet))
}

/// The shard of a segment or datagram within loopback, by its sender's and its receiver's port.
pub(crate) fn owner_within_loopback(protocol: u8, (from, to): (u16, u16)) -> Option<u16> {
    match protocol {
        TCP => Some(owner_of_port(from ^ to)),
        UDP => Some(owner_of_port(to)),
        _ => None,
    }
}

/// The shard of a TCP connection.
pub fn owner_of_connection(local: Endpoint, remote: Endpoint) -> u16 {
    if local.addr.is_loopback() && remote.addr.is_loopback() {
        return owner_of_port(local.port ^ remote.port);
    }
    let ports = Some((remote.port, local.port));
    owner(&packet(remote.addr, local.addr, TCP, ports))
}

/// The shard in which datagrams between two hosts arrive.
pub(crate) fn owner_of_hosts(local: IpAddr, remote: IpAddr) -> u16 {
    owner(&packet(remote, local, UDP, None))
}

fn packet(src: IpAddr, dst: IpAddr, protocol: u8, ports: Option<(u16, u16)>) -> Packet {
    Packet {
        src,
        dst,
        protocol,
        piece: Piece::Whole,
        ports,
        dsfield: 0,
        transport_at: 0,
    }
}

/// What a message of ARP or neighbour discovery teaches, for a stack that does not answer it.
/// `None` without memory: the stack will ask for itself.
pub(crate) fn announcement_of(frame: &RxFrame) -> Option<RxFrame> {
    let mut buffer = crate::device::memory::packet_pool().alloc()?;
    dispatch::announcement_of(&frame.chain, &mut buffer).then_some(())?;
    Some(RxFrame {
        chain: Chain::from(buffer),
        checksum: Checksum::Unknown,
        coalesced: None,
        tag: frame.tag,
    })
}
