use wire::{IPV4_HEADER_BYTES, Ipv4Repr, Sum, UdpRepr};

use super::*;
use crate::names::tests::question;
use crate::network::tests::network;

/// Three machines: a, b, and c, which is also called `cache`.
fn fabric() -> Fabric {
    let mut fabric = Fabric::new(network());
    for (id, names) in [(1, vec!["a"]), (2, vec!["b"]), (3, vec!["c", "cache"])] {
        let address = Ipv4Addr::new(10, 89, 3, id as u8 + 1);
        let station = Station {
            names: names.iter().map(ToString::to_string).collect(),
            lease: fabric.network().lease(address),
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
    let to_all = frame(mac(1), MacAddr::BROADCAST, EtherType::Ipv6, b"any");
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
        frame(mac(1), MacAddr::BROADCAST, EtherType::Ipv6, &[6; 80]),
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
