//! Section 3: flows; and the limits and priorities of links.

use base::Duration;
use link::counters::DropReason;
use link::flow::{FlowError, FlowProps, Kind, Rule};
use link::lane::TxFlags;
use link::links::LinkError;
use sim::lan::frames::{Flow, TCP, UDP};
use sim::lan::{Card, Lan, station};
use wire::MacAddr;

use crate::{flow, vnic};

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);

fn lan() -> Lan {
    Lan::with_card(Card::new(NIC.0, &[(1, 16)], true)).expect("a card")
}

fn rule(text: &str) -> Rule {
    Rule::parse(text).expect("a rule")
}

/// Section 3, check 2.
#[test]
fn flows_of_two_kinds_on_one_link_fail() {
    let mut lan = lan();
    let (link, _) = vnic(&mut lan, 1, None);
    let props = FlowProps::default();
    let https = rule("transport=tcp,local_port=443");
    lan.links
        .add_flow(link, "https1", https, props)
        .expect("the first");
    let mixed = lan
        .links
        .add_flow(link, "host1", rule("local_ip=10.0.0.1"), props);
    let existing = Kind::LocalPort;
    assert_eq!(
        mixed,
        Err(LinkError::Flow(FlowError::MixedKinds { existing }))
    );
    let same = lan.links.add_flow(link, "again1", https, props);
    assert_eq!(same, Err(LinkError::Flow(FlowError::SameRule)));
    let other = rule("transport=tcp,local_port=80");
    let taken = lan.links.add_flow(link, "https1", other, props);
    assert_eq!(taken, Err(LinkError::Flow(FlowError::NameTaken)));
    let long = "f".repeat(128);
    for name in ["", "1st", "two words", "tab\t", &long] {
        let bad = lan.links.add_flow(link, name, other, props);
        let error = LinkError::Flow(FlowError::BadName);
        assert_eq!(bad, Err(error), "{name:?}");
    }
    assert_eq!(lan.links.flows().count(), 1);
}

/// Section 3, check 6.
#[test]
fn removing_by_link_removes_all_its_flows_and_no_others() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, None);
    let (two, _) = vnic(&mut lan, 2, None);
    let props = FlowProps::default();
    for (link, name, port) in [(one, "a1", 1), (one, "b1", 2), (two, "c1", 1)] {
        let text = format!("transport=tcp,local_port={port}");
        lan.links
            .add_flow(link, name, rule(&text), props)
            .expect("new");
    }
    lan.links.remove_flows_of(one).expect("there");
    let names: Vec<_> = lan.links.flows().map(|flow| flow.name).collect();
    assert_eq!(names, ["c1"]);
    lan.links.remove_flow("c1").expect("there");
    let gone = lan.links.remove_flow("c1");
    assert_eq!(gone, Err(LinkError::Flow(FlowError::NoSuchFlow)));
}

/// Frames of 14 + 20 + 8 bytes.
const FRAME_BITS: u64 = 42 * 8;

/// Section 3, check 4.
#[test]
fn a_limit_on_udp_caps_udp_and_leaves_tcp_alone() {
    let mut lan = lan();
    let (link, _) = vnic(&mut lan, 1, None);
    let mut props = FlowProps::default();
    props.set("maxbw", "10M").expect("a limit");
    lan.links
        .add_flow(link, "udp1", rule("transport=udp"), props)
        .expect("new");
    let (mut sent_tcp, mut udp_out, mut tcp_out) = (0, 0, 0);
    for _ in 0..1000 {
        for protocol in [TCP, UDP] {
            let flow = Flow {
                protocol,
                ..flow(PEER, station(1))
            };
            let frames: Vec<_> = (0..40).map(|number| flow.frame(number)).collect();
            let _ = lan.send_by(0, link, &frames, TxFlags::DROP);
        }
        sent_tcp += 40;
        lan.run(0);
        for frame in lan.take_wire() {
            match frame[23] {
                TCP => tcp_out += 1,
                _ => udp_out += 1,
            }
        }
        lan.shell.now += Duration::from_millis(1);
    }
    assert_eq!(tcp_out, sent_tcp);
    let bits = udp_out * FRAME_BITS;
    assert!(
        (9_500_000..=10_500_000).contains(&bits),
        "{bits} bits in a second"
    );
    let drops = &lan.lanes[0].counters(link).expect("a client").drops;
    assert_eq!(drops.get(DropReason::TxBacklog), 40_000 - udp_out);
}

/// Section 1, check 7.
#[test]
fn a_link_with_maxbw_100m_sends_and_receives_within_five_percent_over_ten_seconds() {
    let mut lan = lan();
    let (link, stream) = vnic(&mut lan, 1, None);
    lan.links.set_prop(link, "maxbw", "100M").expect("a limit");
    let long = |dst, src| sim::frame::ethernet(dst, src, wire::EtherType::Arp, &[0; 1486]);
    let (outward, inward) = (long(PEER, station(1)), long(station(1), PEER));
    let frames: Vec<_> = (0..20).map(|_| outward.clone()).collect();
    let (mut sent, mut received) = (0_u64, 0_u64);
    for _ in 0..10_000 {
        let _ = lan.send_by(0, link, &frames, TxFlags::DROP);
        for _ in 0..12 {
            lan.arrive(&inward);
        }
        lan.run(0);
        sent += lan.take_wire().len() as u64 * 1500 * 8;
        received += lan.take(stream).len() as u64 * 1500 * 8;
        lan.shell.now += Duration::from_millis(1);
    }
    for bits in [sent, received] {
        assert!((950_000_000..=1_050_000_000).contains(&bits), "{bits}");
    }
    let low = lan.links.set_prop(link, "maxbw", "1M");
    assert!(low.is_err());
}

#[test]
fn a_limit_of_zero_lets_nothing_in_or_out() {
    let mut lan = lan();
    let (link, stream) = vnic(&mut lan, 1, None);
    lan.links.set_prop(link, "maxbw", "0").expect("allowed");
    lan.send(link, &flow(PEER, station(1)).frame(0));
    lan.arrive(&flow(station(1), PEER).frame(1));
    lan.settle();
    assert!(lan.take_wire().is_empty() && lan.take(stream).is_empty());
    let drops = &lan.lanes[0].counters(link).expect("a client").drops;
    assert_eq!(drops.get(DropReason::RxBandwidth), 1);
    assert_eq!(drops.get(DropReason::TxBandwidth), 1);
}

#[test]
fn received_frames_beyond_a_limit_wait_bounded_and_are_dropped_with_a_reason() {
    let card = Card::new(NIC.0, &[(1, 16)], false);
    let mut lan = Lan::with_card(card).expect("a card");
    let (link, stream) = vnic(&mut lan, 1, None);
    lan.links.set_prop(link, "maxbw", "1.2M").expect("a limit");
    let frame = flow(station(1), PEER).frame(0);
    for _ in 0..200 {
        for _ in 0..50 {
            lan.arrive(&frame);
        }
        lan.run(0);
        assert!(lan.lanes[0].waiting(&lan.shell) <= 1024 + 64);
    }
    let drops = &lan.lanes[0].counters(link).expect("a client").drops;
    assert!(drops.get(DropReason::RxBandwidth) > 8000);
    let outlook = lan.run(0);
    assert!(outlook.at > lan.shell.now && outlook.at < base::Instant::NEVER);
    let before = lan.take(stream).len();
    lan.shell.now = outlook.at;
    lan.run(0);
    assert!(before > 0 && !lan.take(stream).is_empty());
}

#[test]
fn the_higher_priority_goes_first_when_the_card_has_room_again() {
    let card = Card::new(NIC.0, &[(1, 16)], true);
    card.set_slots(64, 0);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let (link, _) = vnic(&mut lan, 1, None);
    lan.links.set_prop(link, "priority", "low").expect("known");
    let mut props = FlowProps::default();
    props.set("priority", "high").expect("known");
    lan.links
        .add_flow(link, "udp1", rule("transport=udp"), props)
        .expect("new");
    for protocol in [TCP, UDP] {
        let flow = Flow {
            protocol,
            ..flow(PEER, station(1))
        };
        let frames: Vec<_> = (0..5).map(|number| flow.frame(number)).collect();
        let _ = lan.send_by(0, link, &frames, TxFlags::empty());
    }
    card.set_slots(64, 64);
    lan.run(0);
    let order: Vec<u8> = lan.take_wire().iter().map(|frame| frame[23]).collect();
    assert_eq!(order, [UDP, UDP, UDP, UDP, UDP, TCP, TCP, TCP, TCP, TCP]);
}

#[test]
fn a_flow_counts_its_own_frames_while_others_come_and_go() {
    let mut lan = lan();
    let (link, _) = vnic(&mut lan, 1, None);
    let props = FlowProps::default();
    lan.links
        .add_flow(link, "udp1", rule("transport=udp"), props)
        .expect("new");
    let id = lan.links.flows().next().expect("a flow").id;
    let udp = Flow {
        protocol: UDP,
        ..flow(PEER, station(1))
    };
    lan.send(link, &udp.frame(0));
    lan.send(link, &flow(PEER, station(1)).frame(1));
    lan.links
        .add_flow(link, "tcp1", rule("transport=tcp"), props)
        .expect("new");
    let back = Flow {
        protocol: UDP,
        ..flow(station(1), PEER)
    };
    lan.arrive(&back.frame(2));
    lan.settle();
    lan.links
        .set_flow_prop("udp1", "maxbw", "0")
        .expect("a limit");
    lan.send(link, &udp.frame(3));
    lan.arrive(&back.frame(4));
    lan.settle();
    let counters = lan.lanes[0].flow_counters(id).expect("there");
    let bytes = udp.frame(0).len() as u64;
    assert_eq!((counters.tx_frames, counters.tx_bytes), (1, bytes));
    assert_eq!((counters.rx_frames, counters.rx_bytes), (2, 2 * bytes));
    assert_eq!((counters.rx_dropped, counters.tx_dropped), (1, 1));
    lan.links.remove_flow("udp1").expect("there");
    lan.settle();
    assert_eq!(lan.lanes[0].flow_counters(id), None);
}

#[test]
fn what_waited_is_counted_with_its_flow_when_it_goes() {
    let card = Card::new(NIC.0, &[(1, 16)], true);
    card.set_slots(64, 0);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let (link, _) = vnic(&mut lan, 1, None);
    lan.links
        .add_flow(link, "tcp1", rule("transport=tcp"), FlowProps::default())
        .expect("new");
    let id = lan.links.flows().next().expect("a flow").id;
    lan.send(link, &flow(PEER, station(1)).frame(0));
    let sent = |lan: &Lan| lan.lanes[0].flow_counters(id).map(|flow| flow.tx_frames);
    assert_eq!(sent(&lan), Some(0));
    card.set_slots(64, 64);
    lan.run(0);
    assert_eq!(sent(&lan), Some(1));
}

/// What a shell may rely on that leads frames past the lanes while nothing is set.
#[test]
fn a_port_is_plain_until_something_is_set_on_it_and_afterwards_again() {
    let mut lan = lan();
    let port = lan.port;
    lan.stack_on(port).expect("a stack");
    let is_plain = |lan: &Lan| lan.links.table(port).expect("a port").1.is_plain();
    assert!(is_plain(&lan));
    for (name, value) in [("maxbw", "100M"), ("protection", "ip-nospoof")] {
        lan.links.set_prop(port, name, value).expect("a value");
        assert!(!is_plain(&lan), "{name}");
        lan.links.reset_prop(port, name).expect("known");
        assert!(is_plain(&lan), "{name}");
    }
    let props = FlowProps::default();
    let added = lan
        .links
        .add_flow(port, "udp1", rule("transport=udp"), props);
    assert_eq!((added, is_plain(&lan)), (Ok(()), false));
    lan.links.remove_flow("udp1").expect("a flow");
    assert!(is_plain(&lan));
    let (link, stream) = vnic(&mut lan, 1, None);
    assert!(!is_plain(&lan));
    lan.links.close(stream).expect("a stream");
    lan.links.delete(link).expect("nobody holds it");
    assert!(is_plain(&lan));
}
