//! Predicates against a list of all packets of a small world.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use base::Instant;
use mbuf::HeapPool;
use models::Random;
use wire::{ArpOperation, ArpRepr, EtherType, MacAddr};

use super::{BadPredicate, Ends, Ports, Predicate, Relation, Sending};
use crate::headers::{ICMP, ICMP6, Packet, Piece, TCP, UDP};
use crate::prefix::IpPrefix;
use crate::queues::{Listeners, Queues, Target};
use crate::testing::{self, chain, ethernet, ipv4, ipv6, mac, transport};

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SEEDS: u64 = 300;

/// Four that lie together, and one far away.
const HOSTS: [Ipv4Addr; 5] = [
    Ipv4Addr::new(10, 0, 0, 0),
    US,
    PEER,
    Ipv4Addr::new(10, 0, 0, 3),
    Ipv4Addr::new(192, 168, 7, 7),
];
/// The last one is in no range but that of all ports.
const PORTS: [u16; 5] = [0, 1, 2, 3, 65535];

fn prefix(text: &str) -> IpPrefix {
    IpPrefix::parse(text).expect("a prefix")
}

fn ends(address: &str, ports: Option<(u16, u16)>) -> Ends {
    Ends {
        address: prefix(address),
        ports: ports.map(|(first, last)| Ports::new(first, last).expect("a range")),
    }
}

/// Datagrams to one port of an address of ours.
fn datagrams(port: u16) -> Predicate {
    let peer = ends("0.0.0.0/0", None);
    Predicate::new(ends("10.0.0.1", Some((port, port))), peer, Some(UDP)).expect("a predicate")
}

fn random_ports(random: &mut Random) -> Option<Ports> {
    match random.below(4) {
        0 => None,
        1 => Ports::new(0, 65535),
        _ => {
            let first = random.below(4) as u16;
            Ports::new(first, first + random.below(4 - u64::from(first)) as u16)
        }
    }
}

fn random_predicate(random: &mut Random) -> Predicate {
    let address = |random: &mut Random| {
        let place = random.below(5) as usize;
        // The one that is far away has no neighbours.
        let len = match random.below(4) as usize {
            1.. if place == 4 => 32,
            choice => [0, 30, 31, 32][choice],
        };
        IpPrefix::new(HOSTS[place].into(), len).expect("short")
    };
    let (local, peer) = (address(random), address(random));
    let protocol = [None, Some(TCP), Some(UDP), Some(ICMP)][random.below(4) as usize];
    let has_ports = matches!(protocol, Some(TCP | UDP));
    let ports = |random: &mut Random| random_ports(random).filter(|_| has_ports);
    let (local, peer) = (
        Ends {
            address: local,
            ports: ports(random),
        },
        Ends {
            address: peer,
            ports: ports(random),
        },
    );
    Predicate::new(local, peer, protocol).expect("a predicate")
}

/// Each packet that can be received in the small world.
fn world() -> Vec<Packet> {
    let mut all = Vec::new();
    for src in HOSTS {
        for dst in HOSTS {
            let plain = |protocol, piece, ports| Packet {
                src: src.into(),
                dst: dst.into(),
                protocol,
                piece,
                ports,
                dsfield: 0,
                transport_at: 34,
            };
            all.push(plain(ICMP, Piece::Whole, None));
            for protocol in [TCP, UDP] {
                all.push(plain(protocol, Piece::Later, None));
                all.push(plain(protocol, Piece::First, Some((1, 1))));
                for from in PORTS {
                    let to = PORTS.map(|to| plain(protocol, Piece::Whole, Some((from, to))));
                    all.extend(to);
                }
            }
        }
    }
    all
}

fn admitted(predicate: &Predicate, world: &[Packet]) -> Vec<bool> {
    let admits = |packet| predicate.admits_received(packet);
    world.iter().map(admits).collect()
}

#[test]
fn how_two_predicates_lie_is_what_a_list_of_all_packets_says() {
    let world = world();
    let mut seen = [0; 5];
    for seed in 0..SEEDS * 10 {
        let mut random = Random::new(seed);
        let (one, two) = (random_predicate(&mut random), random_predicate(&mut random));
        let (in_one, in_two) = (admitted(&one, &world), admitted(&two, &world));
        let pairs = || in_one.iter().zip(&in_two);
        let expected = match (
            pairs().any(|(one, two)| *one && *two),
            pairs().any(|(one, two)| *one && !*two),
            pairs().any(|(one, two)| !*one && *two),
        ) {
            (false, ..) => Relation::Apart,
            (true, false, false) => Relation::Equal,
            (true, false, true) => Relation::Inside,
            (true, true, false) => Relation::Around,
            (true, true, true) => Relation::Crossing,
        };
        assert_eq!(one.relation(&two), expected, "{one} and {two}, SEED={seed}");
        seen[expected as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
}

fn frame_of(packet: &Packet) -> Vec<u8> {
    let (from, to) = packet.ports.unwrap_or_default();
    let bytes = transport(from, to, 0);
    let mut frame = testing::packet(
        (mac(1), mac(2)),
        packet.src,
        packet.dst,
        packet.protocol,
        &bytes,
    );
    let field: u16 = match packet.piece {
        Piece::Whole => 0,
        Piece::First => 0x2000,
        Piece::Later => 8,
    };
    frame[20..22].copy_from_slice(&field.to_be_bytes());
    fix_checksum(&mut frame);
    frame
}

/// IPv4's, whose header was changed.
fn fix_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let words = frame[14..34].chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&folded.to_be_bytes());
}

#[test]
fn a_frame_goes_to_the_filter_with_the_fewest_packets_that_has_it_and_else_to_the_stack() {
    let (world, pool) = (world(), HeapPool::new(8));
    let (mut nested, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut made: Vec<Predicate> = Vec::new();
        for _ in 0..40 {
            let new = random_predicate(&mut random);
            match made.iter().all(|other| new.may_stand_beside(other)) && made.len() < 12 {
                true => made.push(new),
                false => refused += 1,
            }
        }
        let mut queues = Queues::new([seed, 5]).expect("memory");
        let attached: Vec<(u16, Predicate)> =
            (2..).zip(made).filter(|_| random.below(4) != 0).collect();
        for (queue, predicate) in &attached {
            queues.join_filtered(*queue, *predicate);
        }
        for _ in 0..60 {
            let packet = world[random.below(world.len() as u64) as usize];
            let has_it = |(_, filter): &&(u16, Predicate)| filter.admits_received(&packet);
            let size =
                |filter: &Predicate| admitted(filter, &world).iter().filter(|it| **it).count();
            let all: Vec<_> = attached.iter().filter(has_it).collect();
            nested += usize::from(all.len() > 1);
            let fewest = all.iter().min_by_key(|(_, filter)| size(filter));
            let expected = fewest.map_or(Target::Stack, |(queue, _)| Target::Queue(*queue));
            let got = queues.receive(&chain(&pool, &frame_of(&packet)), Instant::from_nanos(7));
            // Its ports would not be there for an error's quote, so nothing else decides.
            assert_eq!(got, expected, "{packet:?}, SEED={seed}");
        }
    }
    assert!(nested > 200 && refused > 200, "{nested} {refused}");
}

#[test]
fn ports_need_a_protocol_that_has_some_and_both_ends_are_of_one_family() {
    let (any, ports) = (ends("0.0.0.0/0", None), ends("10.0.0.1", Some((7, 7))));
    for protocol in [None, Some(ICMP)] {
        let refused = Predicate::new(ports, any, protocol);
        assert_eq!(refused, Err(BadPredicate::PortsWithoutProtocol));
    }
    let refused = Predicate::new(ends("::/0", None), any, None);
    assert_eq!(refused, Err(BadPredicate::TwoFamilies));
    assert_eq!(Ports::new(8, 7), None);
}

#[test]
fn a_predicate_is_written_in_the_words_of_flowadm() {
    let text = |local, peer, protocol| {
        let predicate = Predicate::new(local, peer, protocol).expect("a predicate");
        alloc::format!("{predicate}")
    };
    assert_eq!(
        text(
            ends("10.0.0.1", Some((80, 89))),
            ends("10.1.0.0/16", Some((9, 9))),
            Some(TCP)
        ),
        "local_ip=10.0.0.1,transport=tcp,local_port=80-89,remote_ip=10.1.0.0/16,remote_port=9"
    );
    assert_eq!(
        text(ends("::1", None), ends("::/0", None), Some(89)),
        "local_ip=::1,transport=89"
    );
}

/// What may leave by a queue for datagrams from port 7.
fn sends(frame: &[u8]) -> bool {
    let sending = Sending::new(datagrams(7), mac(1));
    sending.admits(&chain(&HeapPool::new(2), frame))
}

fn datagram(from: (MacAddr, Ipv4Addr, u16)) -> Vec<u8> {
    let (station, host, port) = from;
    let packet = ipv4(host, PEER, UDP, &transport(port, 9, 0));
    ethernet(mac(2), station, EtherType::Ipv4, &packet)
}

fn arp(
    operation: ArpOperation,
    sender_mac: MacAddr,
    sender_ip: Ipv4Addr,
    target_ip: Ipv4Addr,
) -> Vec<u8> {
    let mut packet = [0; ArpRepr::BYTES];
    ArpRepr {
        operation,
        sender_mac,
        sender_ip,
        target_mac: mac(2),
        target_ip,
    }
    .emit(&mut packet);
    ethernet(mac(2), mac(1), EtherType::Arp, &packet)
}

#[test]
fn only_its_own_address_and_port_leave_in_frames_of_the_links_own_station() {
    assert!(sends(&datagram((mac(1), US, 7))));
    assert!(!sends(&datagram((mac(3), US, 7))), "another station");
    assert!(!sends(&datagram((mac(1), PEER, 7))), "another address");
    assert!(!sends(&datagram((mac(1), US, 8))), "another port");
    let segment = ipv4(US, PEER, TCP, &transport(7, 9, 0));
    assert!(!sends(&ethernet(mac(2), mac(1), EtherType::Ipv4, &segment)));
    let mut tagged = datagram((mac(1), US, 7));
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    assert!(!sends(&tagged), "a tag");
    assert!(!sends(&ethernet(
        mac(2),
        mac(1),
        EtherType::Other(0x88b5),
        &[0; 60]
    )));
    assert!(!sends(&[]) && !sends(&datagram((mac(1), US, 7))[..36]));
    for piece in [Piece::First, Piece::Later] {
        let fragment = Packet {
            src: US.into(),
            dst: PEER.into(),
            protocol: UDP,
            piece,
            ports: Some((7, 9)),
            dsfield: 0,
            transport_at: 34,
        };
        let mut frame = frame_of(&fragment);
        frame[6..12].copy_from_slice(&mac(1).0);
        assert!(!sends(&frame), "a fragment");
    }
}

#[test]
fn arp_leaves_that_claims_its_own_address_and_no_other() {
    for operation in [ArpOperation::Request, ArpOperation::Reply] {
        assert!(sends(&arp(operation, mac(1), US, PEER)));
        assert!(!sends(&arp(operation, mac(1), PEER, US)), "another address");
        assert!(!sends(&arp(operation, mac(3), US, PEER)), "another station");
    }
}

const US6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

fn discovery(kind: u8, (from, to): (Ipv6Addr, Ipv6Addr), target: Ipv6Addr) -> Vec<u8> {
    let mut message = Vec::from([kind, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(&target.octets());
    ethernet(
        mac(2),
        mac(1),
        EtherType::Ipv6,
        &ipv6(from, to, ICMP6, &message),
    )
}

fn datagrams6() -> Predicate {
    let local = ends("fd00::1", Some((7, 7)));
    Predicate::new(local, ends("::/0", None), Some(UDP)).expect("a predicate")
}

#[test]
fn neighbours_of_ipv6_are_asked_and_told_of_its_own_address_only() {
    let sending = Sending::new(datagrams6(), mac(1));
    let pool = HeapPool::new(2);
    let sends = |frame: &[u8]| sending.admits(&chain(&pool, frame));
    assert!(sends(&discovery(135, (US6, PEER6), PEER6)));
    assert!(sends(&discovery(136, (US6, PEER6), US6)));
    assert!(
        !sends(&discovery(136, (US6, PEER6), PEER6)),
        "it tells of another"
    );
    assert!(!sends(&discovery(135, (PEER6, US6), US6)), "from another");
    assert!(
        !sends(&discovery(134, (US6, PEER6), US6)),
        "it is no router"
    );
    let packet = ipv6(US6, PEER6, UDP, &transport(7, 9, 0));
    assert!(sends(&ethernet(mac(2), mac(1), EtherType::Ipv6, &packet)));
}

/// A link whose queue 3 has a filter for datagrams to port 7, in both families' turn.
fn link(predicate: Predicate) -> Queues {
    let mut queues = Queues::new([1, 2]).expect("memory");
    queues.join_filtered(3, predicate);
    queues
}

fn comes(queues: &mut Queues, frame: &[u8]) -> Target {
    queues.receive(&chain(&HeapPool::new(2), frame), Instant::from_nanos(7))
}

const WITH_STACK: Target = Target::Copies(Listeners {
    queues: 1 << 3,
    with_stack: true,
});

#[test]
fn a_filter_hears_of_neighbours_what_concerns_it_and_the_stack_hears_it_too() {
    let queues = &mut link(datagrams(7));
    let reply = ArpOperation::Reply;
    let other = Ipv4Addr::new(10, 0, 0, 9);
    assert_eq!(comes(queues, &arp(reply, mac(2), PEER, US)), WITH_STACK);
    assert_eq!(
        comes(queues, &arp(ArpOperation::Request, mac(2), PEER, US)),
        WITH_STACK
    );
    assert_eq!(
        comes(queues, &arp(ArpOperation::Request, mac(2), PEER, PEER)),
        WITH_STACK
    );
    assert_eq!(
        comes(queues, &arp(reply, mac(2), PEER, other)),
        Target::Stack
    );
    let queues = &mut link(datagrams6());
    assert_eq!(
        comes(queues, &discovery(135, (PEER6, US6), US6)),
        WITH_STACK
    );
    assert_eq!(
        comes(queues, &discovery(136, (PEER6, US6), PEER6)),
        WITH_STACK
    );
    assert_eq!(
        comes(queues, &discovery(135, (PEER6, US6), PEER6)),
        Target::Stack
    );
}

#[test]
fn an_error_goes_where_the_packet_that_it_quotes_came_from() {
    let queues = &mut link(datagrams(7));
    let error = |port: u16| {
        let quoted = ipv4(US, PEER, UDP, &transport(port, 9, 0));
        let mut message = Vec::from([3, 3, 0, 0, 0, 0, 0, 0]);
        message.extend_from_slice(&quoted);
        let packet = ipv4(PEER, US, ICMP, &message);
        ethernet(mac(1), mac(2), EtherType::Ipv4, &packet)
    };
    assert_eq!(comes(queues, &error(7)), Target::Queue(3));
    assert_eq!(comes(queues, &error(8)), Target::Stack);
}

#[test]
fn queues_without_a_filter_get_what_no_filter_admits_as_if_there_were_none() {
    let queues = &mut link(datagrams(7));
    queues.join(5, true);
    let to = |port| {
        let packet = ipv4(PEER, US, UDP, &transport(9, port, 0));
        ethernet(mac(1), mac(2), EtherType::Ipv4, &packet)
    };
    assert_eq!(comes(queues, &to(7)), Target::Queue(3));
    assert_eq!(comes(queues, &to(8)), Target::Queue(5));
    let both = Listeners {
        queues: 1 << 3 | 1 << 5,
        with_stack: false,
    };
    let reply = arp(ArpOperation::Reply, mac(2), PEER, US);
    assert_eq!(comes(queues, &reply), Target::Copies(both));
    queues.join(6, true);
    let all = Listeners {
        queues: 1 << 3 | 1 << 5 | 1 << 6,
        with_stack: false,
    };
    assert_eq!(comes(queues, &reply), Target::Copies(all));
    queues.leave(3);
    assert_eq!(comes(queues, &reply), Target::All);
    queues.leave(5);
    queues.leave(6);
    assert!(queues.are_all_filtered());
}
