//! VLANs and VNICs in VLANs, names, and what is refused.

use link::counters::DropReason;
use link::links::{Class, LinkError};
use link::vlan::VlanId;
use sim::lan::{Card, Lan, station};
use wire::MacAddr;

use crate::{flow, vnic};

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);

fn lan() -> Lan {
    Lan::with_card(Card::new(NIC.0, &[(1, 16)], true)).expect("a card")
}

fn tagged(mut frame: Vec<u8>, vid: u8) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0, 0, vid]);
    frame
}

/// Section 2, check 2.
#[test]
fn a_vlan_without_a_name_is_named_after_its_port_and_identifier() {
    let card = Card::new(NIC.0, &[(1, 4)], true);
    let mut links = link::Links::new();
    let rss = link::rss::Rss::default();
    let port = links.attach("bge1", card.control(), &rss).expect("a card");
    let vid = VlanId::new(2).expect("valid");
    let vlan = links.create_vlan(None, port, vid).expect("a VLAN");
    let info = links.info(vlan).expect("there");
    assert_eq!((info.name.as_str(), info.class), ("bge2001", Class::Vlan));
    assert_eq!((info.mac, info.over), (NIC, Some(port)));
    assert_eq!((VlanId::new(0), VlanId::new(4095)), (None, None));
    assert_eq!(
        links.create_vlan(None, port, vid),
        Err(LinkError::NameTaken)
    );
    let again = links.create_vlan(Some("other1"), port, vid);
    assert_eq!(again, Err(LinkError::AddressTaken));
}

#[test]
fn a_vlans_frames_are_tagged_on_the_wire_and_bare_above() {
    for handles_tags in [false, true] {
        let card = Card::new(NIC.0, &[(1, 16)], true);
        card.set_handling_tags(handles_tags);
        vlan_on(Lan::with_card(card).expect("a card"));
    }
}

fn vlan_on(mut lan: Lan) {
    let (port, vid) = (lan.port, VlanId::new(5).expect("valid"));
    let vlan = lan.links.create_vlan(None, port, vid).expect("a VLAN");
    let above = lan.stack_on(vlan).expect("a stack");
    let untagged = lan.stack_on(port).expect("a stack");
    let out = flow(PEER, NIC).frame(1);
    lan.send(vlan, &out);
    assert_eq!(lan.take_wire(), [tagged(out, 5)]);
    let inward = flow(NIC, PEER).frame(2);
    lan.arrive(&tagged(inward.clone(), 5));
    lan.arrive(&inward);
    let foreign = lan.arrive(&tagged(inward.clone(), 6));
    assert_eq!(foreign, None, "the card filters it");
    lan.settle();
    let bare = std::slice::from_ref(&inward);
    assert_eq!(lan.take(above), bare);
    assert_eq!(lan.take(untagged), bare);
}

#[test]
fn vnics_in_different_vlans_do_not_hear_each_other() {
    for handles_tags in [false, true] {
        let card = Card::new(NIC.0, &[(1, 16)], true);
        card.set_handling_tags(handles_tags);
        vlans_apart(Lan::with_card(card).expect("a card"));
    }
}

fn vlans_apart(mut lan: Lan) {
    let (one, _) = vnic(&mut lan, 1, Some(7));
    let (_, same) = vnic(&mut lan, 2, Some(7));
    let (_, other) = vnic(&mut lan, 3, Some(8));
    let (_, none) = vnic(&mut lan, 4, None);
    lan.send(one, &flow(MacAddr::BROADCAST, station(1)).frame(0));
    for last in 2..=4 {
        lan.send(one, &flow(station(last), station(1)).frame(1));
    }
    assert_eq!(lan.take(same).len(), 2);
    assert!(lan.take(other).is_empty() && lan.take(none).is_empty());
    assert_eq!(lan.take_wire().len(), 3);
}

#[test]
fn nobody_sends_into_another_vlan() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, Some(7));
    let frame = flow(PEER, station(1)).frame(0);
    lan.send(one, &tagged(frame.clone(), 8));
    lan.send(one, &tagged(frame.clone(), 7));
    assert_eq!(lan.take_wire(), [tagged(frame, 7)]);
    let drops = &lan.lanes[0].counters(one).expect("a client").drops;
    assert_eq!(drops.get(DropReason::ForeignVlan), 1);
}

#[test]
fn an_offload_of_a_tagged_frame_points_behind_the_tag() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, Some(7));
    let (_, two) = vnic(&mut lan, 2, Some(7));
    let offload = mbuf::ChecksumOffload {
        start: 34,
        offset: 16,
    };
    let send = |lan: &mut Lan, to| {
        let bytes = flow(to, station(1)).frame(0);
        let mut frame = sim::lan::frames::sent(&lan.shell.pool, &bytes).expect("a buffer");
        frame.checksum = Some(offload);
        let mut chain: link::TxChain = [frame].into_iter().collect();
        let flags = link::lane::TxFlags::empty();
        lan.send_chain(0, one, &mut chain, flags).expect("room");
    };
    send(&mut lan, PEER);
    let card = lan.card.clone().expect("a card");
    let wire = card.take_sent();
    assert_eq!(wire[0].1.checksum.map(|at| at.start), Some(38));
    send(&mut lan, station(2));
    let (stream, frame) = &lan.shell.delivered[0];
    assert_eq!(*stream, two);
    assert_eq!(frame.checksum, mbuf::Checksum::Partial(offload));
}

#[test]
fn links_are_refused_with_reasons_and_leave_no_trace() {
    let mut lan = lan();
    let port = lan.port;
    let (one, stream) = vnic(&mut lan, 1, None);
    let spec = |name, over, last| link::links::VnicSpec {
        name,
        over,
        mac: link::links::MacSource::Given(station(last)),
        vid: None,
        rings: link::group::RingsWanted::Any,
    };
    let mut refused = |spec| lan.links.create_vnic(&spec);
    assert_eq!(refused(spec("vnic1", port, 9)), Err(LinkError::NameTaken));
    for bad in [
        "vnic",
        "1vnic1",
        "",
        "a-b1",
        "vnic4567890123456789012345678901",
    ] {
        assert_eq!(
            refused(spec(bad, port, 9)),
            Err(LinkError::BadName),
            "{bad}"
        );
    }
    assert_eq!(refused(spec("x1", port, 1)), Err(LinkError::AddressTaken));
    assert_eq!(refused(spec("x1", one, 9)), Err(LinkError::WrongClass));
    let hardware = link::links::VnicSpec {
        rings: link::group::RingsWanted::Hardware,
        ..spec("x1", port, 9)
    };
    let no_group = LinkError::Place(link::group::PlaceError::NoGroup);
    assert_eq!(refused(hardware), Err(no_group));
    assert_eq!(lan.links.iter().count(), 2);
    assert_eq!(lan.links.delete(port), Err(LinkError::InUse));
    assert_eq!(lan.links.delete(one), Err(LinkError::InUse));
    lan.links.close(stream).expect("open");
    assert_eq!(lan.links.delete(one), Ok(()));
    assert_eq!(lan.links.delete(one), Err(LinkError::NotFound));
    assert_eq!(lan.links.delete(port), Ok(()));
}

#[test]
fn a_random_address_is_a_local_station_after_its_prefix() {
    let mut lan = lan();
    let spec = link::links::VnicSpec {
        name: "vnic1",
        over: lan.port,
        mac: link::links::MacSource::Random {
            prefix: link::links::RANDOM_PREFIX,
            bits: 0x1122_3344_5566_7788,
        },
        vid: None,
        rings: link::group::RingsWanted::Any,
    };
    let link = lan.links.create_vnic(&spec).expect("a VNIC");
    let mac = lan.links.info(link).expect("there").mac;
    assert_eq!(mac, MacAddr([0x02, 0x08, 0x20, 0x66, 0x77, 0x88]));
}

#[test]
fn random_bits_that_two_have_in_common_do_not_make_them_one_station() {
    let mut lan = lan();
    let mut made = ["vnic1", "vnic2", "vnic3"].map(|name| {
        let spec = link::links::VnicSpec {
            name,
            over: lan.port,
            mac: link::links::MacSource::Random {
                prefix: link::links::RANDOM_PREFIX,
                bits: 0x1122_3344_5566_7788,
            },
            vid: None,
            rings: link::group::RingsWanted::Any,
        };
        let link = lan.links.create_vnic(&spec).expect("a VNIC");
        lan.links.info(link).expect("there").mac
    });
    made.sort_unstable_by_key(|mac| mac.0);
    assert!(made[0] != made[1] && made[1] != made[2]);
}

/// Section 2, check 7 (what is in memory; persistence is the shell's).
#[test]
fn a_property_that_is_refused_keeps_its_value() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, None);
    lan.links.set_prop(one, "mtu", "1400").expect("in range");
    for (name, value) in [
        ("mtu", "1501"),
        ("speed", "1"),
        ("maxbw", "1M"),
        ("rxrings", "hw"),
    ] {
        let before = lan.links.show_prop(one, name).expect("known");
        assert!(lan.links.set_prop(one, name, value).is_err(), "{name}");
        assert_eq!(lan.links.show_prop(one, name), Ok(before));
    }
    lan.links
        .set_prop(lan.port, "mtu", "1300")
        .expect("in range");
    assert_eq!(lan.links.info(one).expect("there").mtu, 1300);
}

#[test]
fn a_frame_larger_than_the_mtu_is_not_sent() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, None);
    lan.links.set_prop(one, "mtu", "68").expect("in range");
    let fits = sim::frame::ethernet(PEER, station(1), wire::EtherType::Arp, &[0; 68]);
    let long = sim::frame::ethernet(PEER, station(1), wire::EtherType::Arp, &[0; 69]);
    lan.send(one, &fits);
    lan.send(one, &long);
    assert_eq!(lan.take_wire(), [fits]);
    let drops = &lan.lanes[0].counters(one).expect("a client").drops;
    assert_eq!(drops.get(DropReason::TooLong), 1);
}

/// Section 2, check 8.
#[test]
fn what_is_not_set_is_shown_as_two_dashes() {
    let lan = lan();
    for name in ["maxbw", "cpus", "allowed-ips", "protection", "rxrings"] {
        assert_eq!(
            lan.links.show_prop(lan.port, name).as_deref(),
            Ok("--"),
            "{name}"
        );
    }
}

#[test]
fn a_card_lets_in_the_vlans_of_its_ports_clients_and_all_when_there_are_none() {
    let card = Card::new(NIC.0, &[(1, 16)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    assert_eq!(card.vlans(), None);
    let make = |lan: &mut Lan, vid| {
        let vid = VlanId::new(vid).expect("valid");
        lan.links.create_vlan(None, lan.port, vid)
    };
    let five = make(&mut lan, 5).expect("a VLAN");
    let (vnic7, stream) = vnic(&mut lan, 7, Some(7));
    let (_, _) = vnic(&mut lan, 8, Some(7));
    assert_eq!(card.vlans(), Some([5, 7].into()));
    lan.links.delete(five).expect("nobody holds it");
    assert_eq!(card.vlans(), Some([7].into()));
    card.set_refusing(true);
    assert!(matches!(make(&mut lan, 9), Err(LinkError::Nic(_))));
    card.set_refusing(false);
    assert!(lan.links.find("net9000").is_none(), "it left no trace");
    lan.links.close(stream).expect("open");
    lan.links.delete(vnic7).expect("nobody holds it");
    assert_eq!(card.vlans(), Some([7].into()), "another is in it");
}
