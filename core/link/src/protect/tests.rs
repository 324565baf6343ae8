//! Forged and honest frames of a client with all protections, and what it learns.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use base::{Duration, Instant};
use mbuf::{Chain, HeapPool};
use wire::{DhcpMessage, DhcpRepr, EtherType, MacAddr};

use super::cid::ClientId;
use super::learn::{Learner, PENDING_FOR, PENDING_MAX};
use super::{Guard, Methods, Protection};
use crate::counters::DropReason;
use crate::headers::{Header, ICMP6, Packet, UDP};
use crate::prefix::{IpPrefix, link_local};
use crate::testing::{chain, ethernet, ipv4, ipv6, mac, transport};

const OURS: [u8; 4] = [192, 168, 10, 77];
const FOREIGN: [u8; 4] = [192, 168, 11, 1];

fn guard() -> Guard {
    Guard {
        mac: mac(7),
        secondary: Vec::new(),
        vid: None,
        on: Protection::all(),
        allowed: [IpPrefix::parse("192.168.10.0/24").expect("valid")].to_vec(),
        learned: Vec::new(),
        methods: Methods::all(),
        client_ids: Vec::new(),
        all_client_ids: false,
    }
}

fn check(guard: &Guard, frame: &[u8]) -> Result<(), DropReason> {
    let pool = HeapPool::new(4);
    let chain = chain(&pool, frame);
    let (header, packet) = parse(&chain);
    guard.check(&header, packet.as_ref(), &chain)
}

fn parse(chain: &Chain) -> (Header, Option<Packet>) {
    let header = Header::of(chain).expect("a header");
    (header, Packet::of(&header, chain))
}

fn v4(src: MacAddr, from: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let packet = ipv4(from.into(), [192, 168, 10, 1].into(), protocol, payload);
    ethernet(mac(1), src, EtherType::Ipv4, &packet)
}

fn v6(from: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let packet = ipv6(from, "ff02::1".parse().expect("ok"), next, payload);
    ethernet(mac(1), mac(7), EtherType::Ipv6, &packet)
}

fn arp(sender: MacAddr, ip: [u8; 4]) -> Vec<u8> {
    let mut body = [0; wire::ArpRepr::BYTES];
    let packet = wire::ArpRepr {
        operation: wire::ArpOperation::Reply,
        sender_mac: sender,
        sender_ip: ip.into(),
        target_mac: mac(1),
        target_ip: [192, 168, 10, 1].into(),
    };
    packet.emit(&mut body);
    ethernet(mac(1), mac(7), EtherType::Arp, &body)
}

fn udp(from: u16, to: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = transport(from, to, (body.len() as u32 + 8) << 16);
    bytes.extend_from_slice(body);
    bytes
}

fn dhcp(message: DhcpMessage, station: MacAddr, transaction: u32) -> Vec<u8> {
    let mut body = alloc::vec![0; DhcpRepr::BYTES];
    let request = DhcpRepr {
        message,
        transaction,
        elapsed_secs: 0,
        mac: station,
        client_ip: [0; 4].into(),
        requested_ip: Some(OURS.into()),
        server: None,
        host_name: None,
    };
    request.emit(&mut body);
    body
}

fn dhcp_frame(body: &[u8]) -> Vec<u8> {
    v4(mac(7), [0; 4], UDP, &udp(68, 67, body))
}

/// A message with its client identifier replaced by `id`.
fn with_id(id: &[u8]) -> Vec<u8> {
    let mut body = dhcp(DhcpMessage::Request, mac(7), 1);
    body.truncate(240);
    body.extend_from_slice(&[53, 1, 3, 61, id.len() as u8]);
    body.extend_from_slice(id);
    body.push(255);
    body
}

#[test]
fn each_forgery_drops_with_exactly_its_own_reason() {
    let payload = transport(1, 2, 3);
    for (frame, reason) in [
        (v4(mac(8), OURS, UDP, &payload), DropReason::MacSpoofed),
        (
            ethernet(mac(1), mac(7), EtherType::Other(0x88cc), &[0; 46]),
            DropReason::Restricted,
        ),
        (v4(mac(7), FOREIGN, UDP, &payload), DropReason::IpSpoofed),
        (arp(mac(7), FOREIGN), DropReason::IpSpoofed),
        (arp(mac(8), OURS), DropReason::IpSpoofed),
        (
            dhcp_frame(&dhcp(DhcpMessage::Discover, mac(8), 1)),
            DropReason::DhcpSpoofed,
        ),
    ] {
        assert_eq!(check(&guard(), &frame), Err(reason));
    }
}

#[test]
fn honest_frames_pass_all_protections() {
    for frame in [
        v4(mac(7), OURS, UDP, &transport(1, 2, 3)),
        v4(mac(7), [0; 4], UDP, &transport(1, 2, 3)),
        arp(mac(7), OURS),
        arp(mac(7), [0; 4]),
        dhcp_frame(&dhcp(DhcpMessage::Discover, mac(7), 1)),
        v6(link_local(mac(7)), UDP, &transport(1, 2, 3)),
        v6(Ipv6Addr::UNSPECIFIED, UDP, &transport(1, 2, 3)),
    ] {
        assert_eq!(check(&guard(), &frame), Ok(()));
    }
}

#[test]
fn without_protection_everything_passes() {
    let free = Guard {
        on: Protection::empty(),
        ..guard()
    };
    assert_eq!(check(&free, &v4(mac(8), FOREIGN, UDP, &[])), Ok(()));
    assert_eq!(check(&free, &arp(mac(8), FOREIGN)[..20]), Ok(()));
}

#[test]
fn allowed_ips_let_77_pass_and_drop_the_neighbouring_network() {
    let frame = |from| v4(mac(7), from, UDP, &transport(1, 2, 3));
    assert_eq!(check(&guard(), &frame(OURS)), Ok(()));
    assert_eq!(check(&guard(), &frame(FOREIGN)), Err(DropReason::IpSpoofed));
}

#[test]
fn a_secondary_address_is_tolerated_by_mac_nospoof() {
    let both = Guard {
        secondary: [mac(8)].to_vec(),
        ..guard()
    };
    assert_eq!(
        check(&both, &v4(mac(8), OURS, UDP, &transport(1, 2, 3))),
        Ok(())
    );
}

#[test]
fn a_restricted_link_sends_in_its_own_vlan_only() {
    let mut frame = v4(mac(7), OURS, UDP, &transport(1, 2, 3));
    frame.splice(12..12, [0x81, 0, 0, 9]);
    assert_eq!(check(&guard(), &frame), Err(DropReason::Restricted));
    let member = Guard {
        vid: crate::vlan::VlanId::new(9),
        ..guard()
    };
    assert_eq!(check(&member, &frame), Ok(()));
}

#[test]
fn cut_off_arp_and_ip_drop() {
    let whole = arp(mac(7), OURS);
    for len in 14..whole.len() {
        assert_eq!(
            check(&guard(), &whole[..len]),
            Err(DropReason::IpSpoofed),
            "{len}"
        );
    }
    let whole = v4(mac(7), OURS, UDP, &transport(1, 2, 3));
    for len in 14..whole.len() {
        assert_eq!(
            check(&guard(), &whole[..len]),
            Err(DropReason::IpSpoofed),
            "{len}"
        );
    }
}

fn advert(target: Ipv6Addr, options: &[u8]) -> Vec<u8> {
    let mut body = alloc::vec![136, 0, 0, 0, 0x60, 0, 0, 0];
    body.extend_from_slice(&target.octets());
    body.extend_from_slice(options);
    v6(link_local(mac(7)), ICMP6, &body)
}

#[test]
fn neighbour_discovery_names_only_the_clients_station_and_addresses() {
    let ours = link_local(mac(7));
    let option = |last: u8| [2, 1, 2, 0, 0, 0, 0, last];
    assert_eq!(check(&guard(), &advert(ours, &option(7))), Ok(()));
    assert_eq!(check(&guard(), &advert(ours, &[])), Ok(()));
    let spoofed = Err(DropReason::IpSpoofed);
    assert_eq!(check(&guard(), &advert(ours, &option(8))), spoofed);
    assert_eq!(
        check(&guard(), &advert(link_local(mac(8)), &option(7))),
        spoofed
    );
    let mut solicit = advert(ours, &[1, 1, 2, 0, 0, 0, 0, 8]);
    solicit[54] = 135;
    assert_eq!(check(&guard(), &solicit), spoofed);
}

#[test]
fn neighbour_discovery_with_an_option_of_length_zero_or_cut_off_drops() {
    let ours = link_local(mac(7));
    let spoofed = Err(DropReason::IpSpoofed);
    assert_eq!(
        check(&guard(), &advert(ours, &[2, 0, 2, 0, 0, 0, 0, 7])),
        spoofed
    );
    assert_eq!(
        check(&guard(), &advert(ours, &[2, 2, 2, 0, 0, 0, 0, 7])),
        spoofed
    );
    assert_eq!(check(&guard(), &advert(ours, &[5])), spoofed);
    assert_eq!(check(&guard(), &v6(ours, ICMP6, &[136, 0, 0, 0])), spoofed);
}

#[test]
fn discovery_in_pieces_is_read_to_its_last_option_and_drops_if_that_is_too_far() {
    let pool = HeapPool::new(32);
    let ours = link_local(mac(7));
    let in_pieces = |padding: usize, last: u8| {
        let mut options = [14, 1, 0, 0, 0, 0, 0, 0].repeat(padding);
        options.extend_from_slice(&[2, 1, 2, 0, 0, 0, 0, last]);
        let whole = advert(ours, &options);
        let mut pieces = Chain::new();
        for part in whole.chunks(1000) {
            pieces.append(chain(&pool, part));
        }
        let (header, packet) = parse(&pieces);
        guard().check(&header, packet.as_ref(), &pieces)
    };
    assert_eq!(in_pieces(300, 7), Ok(()));
    assert_eq!(in_pieces(300, 8), Err(DropReason::IpSpoofed));
    assert_eq!(in_pieces(1200, 7), Err(DropReason::IpSpoofed));
}

#[test]
fn a_fragment_of_neighbour_discovery_drops_and_a_later_fragment_passes() {
    let ours = link_local(mac(7));
    let mut first = alloc::vec![ICMP6, 0, 0, 1, 0, 0, 0, 5];
    first.extend_from_slice(&[136, 0, 0, 0, 0, 0, 0, 0]);
    first.extend_from_slice(&ours.octets());
    assert_eq!(
        check(&guard(), &v6(ours, 44, &first)),
        Err(DropReason::IpSpoofed)
    );
    let later = [ICMP6, 0, 0, 8, 0, 0, 0, 5, 136, 0, 0, 0];
    assert_eq!(check(&guard(), &v6(ours, 44, &later)), Ok(()));
}

#[test]
fn a_first_fragment_of_dhcp_drops() {
    let mut frame = dhcp_frame(&dhcp(DhcpMessage::Discover, mac(7), 1));
    frame[20] = 0x20;
    frame[24..26].fill(0);
    let sum = wire::Sum::new().bytes(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(check(&guard(), &frame), Err(DropReason::DhcpSpoofed));
}

#[test]
fn a_dhcp_identity_is_absent_our_own_or_allowed() {
    let id = |id: &[u8]| dhcp_frame(&with_id(id));
    assert_eq!(check(&guard(), &id(&[1, 2, 0, 0, 0, 0, 7])), Ok(()));
    assert_eq!(check(&guard(), &id(b"other")), Err(DropReason::DhcpSpoofed));
    let named = Guard {
        client_ids: [ClientId::parse("other").expect("valid")].to_vec(),
        ..guard()
    };
    assert_eq!(check(&named, &id(b"other")), Ok(()));
    let any = Guard {
        all_client_ids: true,
        ..guard()
    };
    assert_eq!(check(&any, &id(b"whatever")), Ok(()));
}

#[test]
fn a_message_that_could_hide_a_second_identity_drops() {
    let mut twice = with_id(&[1, 2, 0, 0, 0, 0, 7]);
    twice.pop();
    twice.extend_from_slice(&[61, 2, 9, 9, 255]);
    let mut overload = with_id(&[1, 2, 0, 0, 0, 0, 7]);
    overload.pop();
    overload.extend_from_slice(&[52, 1, 3, 255]);
    let cut = with_id(b"other")[..246].to_vec();
    for body in [
        twice,
        overload,
        cut,
        dhcp(DhcpMessage::Discover, mac(7), 1)[..100].to_vec(),
    ] {
        assert_eq!(
            check(&guard(), &dhcp_frame(&body)),
            Err(DropReason::DhcpSpoofed)
        );
    }
}

fn solicit6(kind: u8, transaction: u32, duid: &[u8]) -> Vec<u8> {
    let mut body = transaction.to_be_bytes().to_vec();
    body[0] = kind;
    body.extend_from_slice(&[0, 1, 0, duid.len() as u8]);
    body.extend_from_slice(duid);
    body
}

const OWN_DUID: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 7];

#[test]
fn a_dhcpv6_duid_is_our_own_or_allowed_and_relays_drop() {
    let frame = |body: &[u8]| v6(link_local(mac(7)), UDP, &udp(546, 547, body));
    assert_eq!(check(&guard(), &frame(&solicit6(1, 5, &OWN_DUID))), Ok(()));
    let spoofed = Err(DropReason::DhcpSpoofed);
    assert_eq!(
        check(&guard(), &frame(&solicit6(1, 5, &[0, 4, 1, 2]))),
        spoofed
    );
    assert_eq!(check(&guard(), &frame(&[12; 40])), spoofed);
    assert_eq!(
        check(&guard(), &frame(&solicit6(1, 5, &OWN_DUID)[..9])),
        spoofed
    );
}

/// A client and what it has learned.
struct Student {
    pool: HeapPool,
    learner: Learner,
    now: Instant,
}

impl Student {
    fn new() -> Self {
        Self {
            pool: HeapPool::new(4),
            learner: Learner::default(),
            now: Instant::from_millis(1000),
        }
    }

    fn sends(&mut self, frame: &[u8]) -> bool {
        let frame = chain(&self.pool, frame);
        let (_, packet) = parse(&frame);
        let packet = packet.expect("a packet");
        self.learner.sent(self.now, Methods::all(), &packet, &frame)
    }

    fn gets(&mut self, frame: &[u8]) -> bool {
        let frame = chain(&self.pool, frame);
        let (_, packet) = parse(&frame);
        let packet = packet.expect("a packet");
        self.learner
            .received(self.now, Methods::all(), mac(7), &packet, &frame)
    }

    fn is_spoofed(&self, from: [u8; 4]) -> bool {
        let guard = Guard {
            allowed: Vec::new(),
            learned: self.learner.addresses(),
            ..guard()
        };
        check(&guard, &v4(mac(7), from, UDP, &transport(1, 2, 3))).is_err()
    }
}

/// A server's answer, `kind` 5 for ACK and 6 for NAK.
fn answer(kind: u8, transaction: u32, ip: [u8; 4], secs: u32) -> Vec<u8> {
    let mut body = dhcp(DhcpMessage::Request, mac(7), transaction);
    body[0] = 2;
    body[16..20].copy_from_slice(&ip);
    body.truncate(240);
    body.extend_from_slice(&[53, 1, kind, 51, 4]);
    body.extend_from_slice(&secs.to_be_bytes());
    body.push(255);
    let packet = ipv4(
        [192, 168, 10, 1].into(),
        ip.into(),
        UDP,
        &udp(67, 68, &body),
    );
    ethernet(mac(7), mac(1), EtherType::Ipv4, &packet)
}

fn request(transaction: u32) -> Vec<u8> {
    dhcp_frame(&dhcp(DhcpMessage::Request, mac(7), transaction))
}

#[test]
fn a_leased_source_passes_after_the_ack_and_drops_after_the_release() {
    let mut client = Student::new();
    assert!(client.is_spoofed(OURS));
    client.sends(&dhcp_frame(&dhcp(DhcpMessage::Discover, mac(7), 9)));
    client.gets(&answer(2, 9, OURS, 3600));
    assert!(client.is_spoofed(OURS), "an offer is no lease");
    client.sends(&request(9));
    assert!(client.gets(&answer(5, 9, OURS, 3600)));
    assert!(!client.is_spoofed(OURS) && client.is_spoofed(FOREIGN));
    assert!(client.sends(&dhcp_frame(&dhcp(DhcpMessage::Release, mac(7), 10))));
    assert!(client.is_spoofed(OURS));
}

#[test]
fn an_answer_that_nobody_asked_for_teaches_nothing() {
    let mut client = Student::new();
    client.sends(&request(9));
    assert!(!client.gets(&answer(5, 8, OURS, 3600)));
    client.now += PENDING_FOR;
    assert!(!client.gets(&answer(5, 9, OURS, 3600)));
    assert!(client.is_spoofed(OURS));
}

#[test]
fn a_lease_ends_with_its_time_unless_renewed_and_with_a_refusal() {
    let mut client = Student::new();
    client.sends(&request(1));
    client.gets(&answer(5, 1, OURS, 100));
    client.now += Duration::from_secs(90);
    client.sends(&request(2));
    client.gets(&answer(5, 2, OURS, 100));
    client.now += Duration::from_secs(90);
    assert!(!client.learner.expire(client.now));
    assert!(!client.is_spoofed(OURS));
    assert_eq!(
        client.learner.next_expiry(),
        client.now + Duration::from_secs(10)
    );
    client.now += Duration::from_secs(10);
    assert!(client.learner.expire(client.now));
    assert!(client.is_spoofed(OURS));
    client.sends(&request(3));
    client.gets(&answer(5, 3, OURS, 100));
    client.sends(&request(4));
    assert!(client.gets(&answer(6, 4, [0; 4], 0)));
    assert!(client.is_spoofed(OURS));
}

#[test]
fn pending_requests_are_bounded_and_the_rest_counts_as_dropped() {
    let mut client = Student::new();
    for transaction in 0..PENDING_MAX as u32 + 5 {
        client.sends(&request(transaction));
    }
    assert_eq!(client.learner.pending(), PENDING_MAX);
    assert_eq!(client.learner.dropped(), 5);
    client.now += PENDING_FOR;
    client.sends(&request(9999));
    assert_eq!(client.learner.pending(), 1);
}

#[test]
fn a_malformed_binding_is_counted_and_teaches_nothing() {
    let mut client = Student::new();
    client.sends(&dhcp_frame(&[1; 20]));
    client.gets(&v6(link_local(mac(1)), UDP, &udp(547, 546, &[7, 0])));
    assert_eq!(client.learner.dropped(), 2);
}

#[test]
fn a_dhcpv6_reply_grants_and_takes_back_addresses() {
    let mut client = Student::new();
    let ours: Ipv6Addr = "2001:db8::7".parse().expect("ok");
    let sent = |kind, transaction| {
        let body = solicit6(kind, transaction, &OWN_DUID);
        v6(link_local(mac(7)), UDP, &udp(546, 547, &body))
    };
    let reply = |transaction, secs: u32| {
        let mut body = solicit6(7, transaction, &OWN_DUID);
        body.extend_from_slice(&[0, 3, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 24]);
        body.extend_from_slice(&ours.octets());
        body.extend_from_slice(&[0, 0, 0, 9]);
        body.extend_from_slice(&secs.to_be_bytes());
        v6(link_local(mac(1)), UDP, &udp(547, 546, &body))
    };
    client.sends(&sent(3, 1));
    assert!(client.gets(&reply(1, 600)));
    assert_eq!(client.learner.addresses(), [ours]);
    assert!(!client.gets(&reply(1, 0)), "an answer counts once");
    client.sends(&sent(5, 2));
    assert!(client.gets(&reply(2, 0)));
    assert!(client.learner.addresses().is_empty());
    client.sends(&sent(3, 3));
    client.gets(&reply(3, 600));
    assert!(client.sends(&sent(8, 4)));
    assert!(client.learner.addresses().is_empty());
}

#[test]
fn a_routers_prefix_teaches_the_stations_own_address_only() {
    let mut client = Student::new();
    let mut body = [0; 48].to_vec();
    body[0] = 134;
    body[16..20].copy_from_slice(&[3, 4, 64, 0xc0]);
    body[20..24].copy_from_slice(&600_u32.to_be_bytes());
    let prefix: Ipv6Addr = "2001:db8::".parse().expect("ok");
    body[32..48].copy_from_slice(&prefix.octets());
    assert!(client.gets(&v6(link_local(mac(1)), ICMP6, &body)));
    let expected = crate::prefix::from_mac(prefix, mac(7));
    assert_eq!(client.learner.addresses(), [expected]);
    assert!(client.learner.keep_only(Methods::DHCPV4 | Methods::DHCPV6));
    assert!(client.learner.addresses().is_empty());
}
