use std::net::Ipv6Addr;

use wire::{
    FRAGMENT_HEADER_BYTES, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Ipv4Repr, Ipv6Fragment, Ipv6Repr,
    NdpOption, NdpRepr, RouterAdvert, RouterPreference, Sum, UdpRepr, fill_icmpv6_checksum,
    next_header,
};

use super::*;
use crate::names::Question;
use crate::names::tests::question;
use crate::network::Alone;
use crate::network::tests::network;

/// Three machines: a, b, and c, which is also called `cache`.
fn fabric() -> Fabric {
    let mut fabric = Fabric::new(network());
    for (id, names) in [(1, vec!["a"]), (2, vec!["b"]), (3, vec!["c", "cache"])] {
        let address = Ipv4Addr::new(10, 89, 3, id as u8 + 1);
        let station = Station {
            names: names.iter().map(ToString::to_string).collect(),
            lease: fabric.network().lease(address),
            has_others: id == 2,
            is_further: false,
        };
        fabric.add(id, station);
    }
    fabric
}

fn address(id: MemberId) -> Ipv4Addr {
    Ipv4Addr::new(10, 89, 3, id as u8 + 1)
}

fn mac(id: MemberId) -> MacAddr {
    MacAddr([2, 0x42, 10, 89, 3, id as u8 + 1])
}

fn frame(src: MacAddr, dst: MacAddr, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_HEADER_BYTES];
    EthernetRepr {
        dst,
        src,
        ether_type,
    }
    .emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

fn datagram(from: Ipv4Addr, to: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; IPV4_HEADER_BYTES + UDP_HEADER_BYTES];
    Ipv4Repr {
        src: from,
        dst: to,
        protocol: Protocol::Udp,
        payload_len: (UDP_HEADER_BYTES + payload.len()) as u16,
        ttl: 64,
        tos: 0,
    }
    .emit(&mut packet);
    let udp = UdpRepr {
        src_port: 4000,
        dst_port: port,
        payload_len: payload.len() as u16,
    };
    udp.emit(&mut packet[IPV4_HEADER_BYTES..], 0);
    packet.extend_from_slice(payload);
    packet
}

fn arp(operation: ArpOperation, own: MemberId, target: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0; ArpRepr::BYTES];
    ArpRepr {
        operation,
        sender_mac: mac(own),
        sender_ip: address(own),
        target_mac: MacAddr::default(),
        target_ip: target,
    }
    .emit(&mut packet);
    frame(mac(own), MacAddr::BROADCAST, EtherType::Arp, &packet)
}

fn address6(id: MemberId) -> Ipv6Addr {
    let lease = network().lease(address(id));
    lease.address6.expect("the network has such addresses")
}

/// To all nodes, with a payload of that kind.
fn frame_v6(own: MemberId, src: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; IPV6_HEADER_BYTES];
    Ipv6Repr {
        src,
        dst: ALL_NODES,
        next_header,
        payload_len: payload.len() as u16,
        hop_limit: 255,
        traffic_class: 0,
        flow_label: 0,
    }
    .emit(&mut packet);
    packet.extend_from_slice(payload);
    frame(
        mac(own),
        MacAddr([0x33, 0x33, 0, 0, 0, 1]),
        EtherType::Ipv6,
        &packet,
    )
}

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

fn message(src: Ipv6Addr, said: NdpRepr, options: &[NdpOption]) -> Vec<u8> {
    let mut message = vec![0; said.len() + options.iter().map(NdpOption::len).sum::<usize>()];
    said.emit(&mut message, options);
    fill_icmpv6_checksum(&mut message, src, ALL_NODES);
    message
}

fn discovery(own: MemberId, src: Ipv6Addr, said: NdpRepr, options: &[NdpOption]) -> Vec<u8> {
    frame_v6(own, src, next_header::ICMPV6, &message(src, said, options))
}

/// The member 1, or as another, says that `target` is at `station`.
fn neighbor_advert(own: MemberId, target: Ipv6Addr, station: MacAddr) -> Vec<u8> {
    let said = NdpRepr::NeighborAdvert {
        target,
        is_router: false,
        is_solicited: false,
        is_override: true,
    };
    discovery(own, address6(own), said, &[NdpOption::TargetLink(station)])
}

/// What is sent where, and whether the resolver is asked.
fn sent(fabric: &mut Fabric, from: Port, frame: &[u8]) -> (Vec<(Port, Vec<u8>)>, bool) {
    let mut sent = Vec::new();
    let asked = fabric.forward(from, frame, &mut |to, frame| {
        sent.push((to, frame.to_vec()));
    });
    (sent, asked.is_some())
}

fn ports(fabric: &mut Fabric, from: Port, frame: &[u8]) -> Vec<Port> {
    let (sent, _) = sent(fabric, from, frame);
    sent.into_iter().map(|(port, _)| port).collect()
}

#[test]
fn a_packet_goes_to_its_member_and_to_the_senders_own_way_out() {
    let mut fabric = fabric();
    let to_b = datagram(address(1), address(2), 9, b"x");
    let to_b = frame(mac(1), mac(2), EtherType::Ipv4, &to_b);
    assert_eq!(ports(&mut fabric, Port::Card(1), &to_b), [Port::Card(2)]);
    let out = datagram(address(1), Ipv4Addr::new(192, 0, 2, 7), 9, b"x");
    let out = frame(mac(1), MacAddr([2; 6]), EtherType::Ipv4, &out);
    assert_eq!(ports(&mut fabric, Port::Card(1), &out), [Port::WayOut(1)]);
    let to_all = frame_v6(1, address6(1), next_header::NONE, b"");
    let others = [Port::Card(2), Port::Card(3)];
    assert_eq!(ports(&mut fabric, Port::Card(1), &to_all), others);
    let back = frame(MacAddr([2; 6]), mac(2), EtherType::Ipv4, b"any");
    assert_eq!(ports(&mut fabric, Port::WayOut(2), &back), [Port::Card(2)]);
    assert_eq!(ports(&mut fabric, Port::WayOut(1), &back), []);
    assert_eq!(fabric.drops.sum(), 1);
}

#[test]
fn nobody_speaks_for_another() {
    let mut fabric = fabric();
    let as_b = datagram(address(2), address(3), 9, b"x");
    for src in [mac(1), mac(2)] {
        let frame = frame(src, mac(3), EtherType::Ipv4, &as_b);
        assert_eq!(ports(&mut fabric, Port::Card(1), &frame), []);
    }
    let mut claim = arp(ArpOperation::Reply, 2, address(3));
    claim[6..12].copy_from_slice(&mac(1).0);
    assert_eq!(ports(&mut fabric, Port::Card(1), &claim), []);
    assert_eq!(fabric.drops.not_the_senders, 3);
}

#[test]
fn over_ipv6_nobody_speaks_for_another_nor_as_a_router() {
    let mut fabric = fabric();
    let solicit = |target| NdpRepr::NeighborSolicit { target };
    let ours = [
        frame_v6(1, address6(1), 17, &[0; 8]),
        neighbor_advert(1, address6(1), mac(1)),
        discovery(1, Ipv6Addr::UNSPECIFIED, solicit(address6(1)), &[]),
        discovery(
            1,
            address6(1),
            solicit(address6(2)),
            &[NdpOption::SourceLink(mac(1))],
        ),
        discovery(1, address6(1), NdpRepr::RouterSolicit, &[]),
    ];
    for frame in &ours {
        assert_eq!(
            ports(&mut fabric, Port::Card(1), frame).len(),
            2,
            "{frame:x?}"
        );
    }
    let advert = NdpRepr::RouterAdvert(RouterAdvert {
        hop_limit: 0,
        is_managed: false,
        has_other: false,
        preference: RouterPreference::Medium,
        lifetime_secs: 1800,
        reachable_ms: 0,
        retrans_ms: 0,
    });
    let redirect = NdpRepr::Redirect {
        target: address6(1),
        destination: address6(2),
    };
    let foreign = [
        frame_v6(1, address6(2), 17, &[0; 8]),
        frame_v6(
            1,
            "fd00:1:2:3::99".parse().expect("an address"),
            17,
            &[0; 8],
        ),
        neighbor_advert(1, address6(2), mac(1)),
        neighbor_advert(1, address6(1), mac(2)),
        discovery(1, Ipv6Addr::UNSPECIFIED, solicit(address6(2)), &[]),
        discovery(
            1,
            address6(1),
            solicit(address6(2)),
            &[NdpOption::SourceLink(mac(2))],
        ),
        discovery(1, address6(1), advert, &[]),
        discovery(1, address6(1), redirect, &[]),
        in_fragments(&message(address6(1), advert, &[]), next_header::ICMPV6),
    ];
    for (number, frame) in (1..).zip(&foreign) {
        assert_eq!(ports(&mut fabric, Port::Card(1), frame), [], "{frame:x?}");
        assert_eq!(fabric.drops.not_the_senders, number);
    }
    let hidden = in_fragments(&[58, 0, 1, 4, 0, 0, 0, 0], next_header::DESTINATION);
    assert_eq!(ports(&mut fabric, Port::Card(1), &hidden), []);
    assert_eq!(fabric.drops.malformed, 1);
    let plain = in_fragments(&[0; 16], 17);
    assert_eq!(ports(&mut fabric, Port::Card(1), &plain).len(), 2);
}

/// The first fragment of a longer packet.
fn in_fragments(payload: &[u8], next_header: u8) -> Vec<u8> {
    let mut first = vec![0; FRAGMENT_HEADER_BYTES];
    let piece = Ipv6Fragment {
        ident: 7,
        offset: 0,
        has_more: true,
        next_header,
    };
    piece.emit(&mut first);
    first.extend_from_slice(payload);
    frame_v6(1, address6(1), next_header::FRAGMENT, &first)
}

#[test]
fn a_link_local_address_is_whose_station_it_names_or_who_used_it_first_and_free_when_that_one_left()
{
    let mut fabric = fabric();
    let says = |own, text: &str| frame_v6(own, text.parse().expect("an address"), 17, &[0; 8]);
    let of_two = "fe80::42:aff:fe59:303";
    for (own, text, is_own) in [
        (1, of_two, false),
        (2, of_two, true),
        (1, "fe80::1", true),
        (2, "fe80::1", false),
        (1, "fe80::2", true),
        (1, "fe80::3", true),
        (1, "fe80::4", true),
        (1, "fe80::5", false),
        (2, "fe80::5", true),
    ] {
        let has_passed = !ports(&mut fabric, Port::Card(own), &says(own, text)).is_empty();
        assert_eq!(has_passed, is_own, "{own} {text}");
    }
    fabric.remove(1);
    assert!(!ports(&mut fabric, Port::Card(2), &says(2, "fe80::1")).is_empty());
}

#[test]
fn the_switch_says_who_has_an_address_and_the_way_out_who_the_gateway_is() {
    let mut fabric = fabric();
    let ask = |target| arp(ArpOperation::Request, 1, target);
    let (answers, _) = sent(&mut fabric, Port::Card(1), &ask(address(3)));
    assert_eq!(answers.len(), 1);
    let reply = ArpRepr::parse(&answers[0].1[ETHERNET_HEADER_BYTES..]).expect("an answer");
    assert_eq!((reply.sender_mac, reply.target_mac), (mac(3), mac(1)));
    let gateway = fabric.network().gateway();
    let to_way_out = ports(&mut fabric, Port::Card(1), &ask(gateway));
    assert_eq!(to_way_out, [Port::WayOut(1)]);
    assert_eq!(ports(&mut fabric, Port::Card(1), &ask(address(1))), []);
    assert_eq!(fabric.drops.sum(), 0);
    assert_eq!(ports(&mut fabric, Port::Card(1), &ask(address(9))), []);
    assert_eq!(fabric.drops.nobody, 1);
}

/// The answer's message, if the switch has one, and whether the resolver is asked.
fn asked(fabric: &mut Fabric, name: &str, kind: u16) -> (Option<Vec<u8>>, bool) {
    let server = fabric.network().name_server();
    let packet = datagram(address(1), server, 53, &question(name, kind));
    let station = fabric.network().switch_station();
    let frame = frame(mac(1), station, EtherType::Ipv4, &packet);
    let (sent, is_asked) = sent(fabric, Port::Card(1), &frame);
    let headers = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
    let answer = sent.first().map(|(port, frame)| {
        assert_eq!(*port, Port::Card(1));
        let packet = &frame[ETHERNET_HEADER_BYTES..];
        let ip = Ipv4View::parse(packet, packet.len()).expect("a packet");
        let (_, message) = udp_of(&ip, packet).expect("a datagram");
        assert_eq!(message, &frame[headers..]);
        let pseudo = Sum::pseudo_v4(
            ip.src(),
            ip.dst(),
            Protocol::Udp,
            (message.len() + UDP_HEADER_BYTES) as u32,
        );
        assert!(pseudo.bytes(&packet[IPV4_HEADER_BYTES..]).is_valid());
        message.to_vec()
    });
    (answer, is_asked)
}

#[test]
fn names_of_members_are_known_and_gone_with_them() {
    let mut fabric = fabric();
    for name in ["cache", "C", "c.back", "cache.BACK"] {
        let (answer, _) = asked(&mut fabric, name, 1);
        assert!(answer.expect(name).ends_with(&[10, 89, 3, 4]), "{name}");
    }
    let (answer, _) = asked(&mut fabric, "b", 28);
    let lease = fabric.network().lease(address(2));
    let wanted = lease.address6.expect("it has one").octets();
    assert!(answer.expect("an answer").ends_with(&wanted));
    let (answer, _) = asked(&mut fabric, "4.3.89.10.in-addr.arpa", 12);
    assert!(answer.expect("an answer").ends_with(b"\x01c\0"));
    fabric.remove(3);
    for name in ["cache", "c.back", "4.3.89.10.in-addr.arpa"] {
        let (answer, is_asked) = asked(&mut fabric, name, 1);
        assert_eq!(answer.map(|answer| answer[3] & 15), Some(3), "{name}");
        assert!(!is_asked);
    }
    assert_eq!(asked(&mut fabric, "example.org", 1), (None, true));
}

#[test]
fn segments_for_the_name_server_are_its_own_and_those_of_another_sender_are_not() {
    let mut fabric = fabric();
    let (server, station) = (
        fabric.network().name_server(),
        fabric.network().switch_station(),
    );
    let mut left = |from: Ipv4Addr, port: u16| {
        let mut packet = datagram(from, server, port, &[0; 12]);
        let header = Ipv4Repr {
            src: from,
            dst: server,
            protocol: Protocol::Tcp,
            payload_len: 20,
            ttl: 64,
            tos: 0,
        };
        header.emit(&mut packet);
        let frame = frame(mac(1), station, EtherType::Ipv4, &packet);
        let left = fabric.forward(Port::Card(1), &frame, &mut |_, _| panic!("it goes nowhere"));
        left == Some(Left::Segment(&frame))
    };
    assert!(left(address(1), 53));
    assert!(!left(address(1), 80) && !left(address(2), 53));
    assert_eq!((fabric.drops.nobody, fabric.drops.not_the_senders), (1, 1));
}

#[test]
fn a_member_on_other_networks_has_these_asked_for_what_is_not_known_here() {
    let mut fabric = fabric();
    let ask = |fabric: &mut Fabric, name| {
        let server = fabric.network().name_server();
        let packet = datagram(address(2), server, 53, &question(name, 1));
        let station = fabric.network().switch_station();
        let frame = frame(mac(2), station, EtherType::Ipv4, &packet);
        let asked = fabric.forward(Port::Card(2), &frame, &mut |_, _| ());
        asked.map(|left| matches!(left, Left::Question(asked) if asked.has_others))
    };
    assert_eq!(ask(&mut fabric, "cache"), None);
    for name in ["web", "web.front", "web.back", "example.org"] {
        assert_eq!(ask(&mut fabric, name), Some(true), "{name}");
    }
    let message = question("web", 1);
    let asked = Question::parse(&message).expect("a question");
    let client = Client {
        member: 2,
        port: 9,
        stream: None,
    };
    let lease = fabric.network().lease(address(3));
    let found = fabric.answer_of_others(client, &asked, &[lease]);
    assert!(found.expect("an answer").ends_with(&[10, 89, 3, 4]));
    let none = fabric
        .answer_of_others(client, &asked, &[])
        .expect("an answer");
    assert_eq!(none[3] & 15, 3);
}

#[test]
fn what_the_same_card_says_on_another_network_is_no_forgery() {
    let mut fabric = fabric();
    let elsewhere = MacAddr([2, 0x42, 10, 90, 0, 2]);
    let packet = datagram([10, 90, 0, 2].into(), [10, 90, 0, 3].into(), 9, b"x");
    let said = frame(elsewhere, MacAddr::BROADCAST, EtherType::Ipv4, &packet);
    assert_eq!(ports(&mut fabric, Port::Card(1), &said), []);
    assert_eq!((fabric.drops.of_other_networks, fabric.drops.sum()), (1, 1));
}

/// A generator that is the same everywhere (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn whatever_members_send_reaches_only_whom_it_may_and_each_drop_is_counted() {
    const SEED: u64 = 0x0005_eed0_fa54_17c4;
    let mut chance = Chance(SEED);
    let mut fabric = fabric();
    let server = fabric.network().name_server();
    let station = fabric.network().switch_station();
    let asks = datagram(address(1), server, 53, &question("cache", 1));
    let sorts = [
        frame(mac(1), station, EtherType::Ipv4, &asks),
        frame(
            mac(1),
            mac(2),
            EtherType::Ipv4,
            &datagram(address(1), address(2), 9, &[7; 60]),
        ),
        arp(ArpOperation::Request, 1, address(2)),
        arp(ArpOperation::Reply, 1, address(2)),
        frame_v6(1, address6(1), 17, &[6; 80]),
        neighbor_advert(1, address6(1), mac(1)),
    ];
    for round in 0..200_000 {
        let mut frame = sorts[chance.below(sorts.len())].clone();
        for _ in 0..chance.below(4) {
            let at = chance.below(frame.len());
            frame[at] = chance.below(256) as u8;
        }
        frame.truncate(frame.len() - chance.below(frame.len()) * chance.below(2));
        let from = match chance.below(2) {
            0 => Port::Card(1),
            _ => Port::WayOut(1),
        };
        let before = fabric.drops.sum();
        let (sent, is_asked) = sent(&mut fabric, from, &frame);
        let dropped = fabric.drops.sum() - before;
        assert!(dropped <= 1, "seed {SEED:#x}, round {round}");
        let own = [Port::Card(1), Port::WayOut(1)];
        for (port, copy) in &sent {
            let from_another = from == Port::WayOut(1) && !own.contains(port);
            let is_spoofed = !own.contains(port) && copy[6..12] != mac(1).0;
            assert!(
                !from_another && !is_spoofed && *port != from || *port == Port::Card(1),
                "seed {SEED:#x}, round {round}"
            );
        }
        assert!(dropped == 0 || sent.is_empty() && !is_asked);
    }
    assert!(fabric.drops.malformed > 0 && fabric.drops.not_the_senders > 0);
}

/// A machine that was given 10.0.2.15 by QEMU, and has a switch to itself now.
fn alone() -> (Fabric, Lease) {
    let mut fabric = Fabric::new(Network {
        name: String::new(),
        subnet: Ipv4Addr::new(10, 0, 2, 0),
        prefix6: None,
        alone: Some(Alone {
            name_server: Ipv4Addr::new(10, 0, 2, 3),
            gateway: Ipv4Addr::new(10, 0, 2, 2),
            mac: [0x52, 0x54, 0, 0x12, 0x34, 0x56],
        }),
        ..network()
    });
    let lease = fabric.network().lease(Ipv4Addr::new(10, 0, 2, 15));
    let station = Station {
        names: vec!["a".into()],
        lease,
        has_others: false,
        is_further: false,
    };
    fabric.add(1, station);
    (fabric, lease)
}

#[test]
fn a_machine_alone_with_its_way_out_finds_it_where_it_was_and_asks_it_for_short_names() {
    let (mut fabric, lease) = alone();
    let own = MacAddr(lease.mac);
    let gateway = MacAddr([0x52, 0x55, 10, 0, 2, 2]);
    let sent = |fabric: &mut Fabric, frame: &[u8]| {
        let mut sent = Vec::new();
        let left = fabric.forward(Port::Card(1), frame, &mut |to, _| sent.push(to));
        (sent, left.is_some())
    };
    let out = (vec![Port::WayOut(1)], false);
    let to = |to| datagram(lease.address, to, 9, b"x");
    let v4 = frame(own, gateway, EtherType::Ipv4, &to([192, 0, 2, 1].into()));
    assert_eq!(sent(&mut fabric, &v4), out);
    let v4 = frame(own, gateway, EtherType::Ipv4, &to([10, 0, 2, 2].into()));
    assert_eq!(sent(&mut fabric, &v4), out);
    let v6 = frame(own, gateway, EtherType::Ipv6, &[0x60; 40]);
    assert_eq!(sent(&mut fabric, &v6), out);
    let names = [10, 0, 2, 3].into();
    let ask = |name: &str| datagram(lease.address, names, 53, &question(name, 1));
    let short = frame(own, gateway, EtherType::Ipv4, &ask("printer"));
    assert_eq!(sent(&mut fabric, &short), (vec![], true));
    let itself = frame(own, gateway, EtherType::Ipv4, &ask("a"));
    assert_eq!(sent(&mut fabric, &itself), (vec![Port::Card(1)], false));
    // What its links on other networks send is theirs.
    let foreign = frame(mac(1), gateway, EtherType::Ipv4, &to([192, 0, 2, 1].into()));
    assert_eq!(sent(&mut fabric, &foreign), (vec![], false));
    assert_eq!(fabric.drops.sum(), 1);
    assert_eq!(fabric.drops.of_other_networks, 1);
}

#[test]
fn what_a_machine_sends_on_its_first_network_is_no_lie_on_a_further_one() {
    let mut fabric = fabric();
    let station = Station {
        is_further: true,
        ..fabric.members().get(&1).expect("a member").clone()
    };
    fabric.add(1, station);
    let first = MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    let said = frame(first, MacAddr::BROADCAST, EtherType::Ipv4, &[]);
    assert!(
        fabric
            .forward(Port::Card(1), &said, &mut |_, _| ())
            .is_none()
    );
    assert_eq!(fabric.drops.of_other_networks, 1);
    assert!(
        fabric
            .forward(Port::Card(2), &said, &mut |_, _| ())
            .is_none()
    );
    assert_eq!(fabric.drops.not_the_senders, 1);
}
