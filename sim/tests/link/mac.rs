//! Section 1: rings, groups, local switching, polling, flow control.

use std::collections::BTreeMap;

use hal::PromiscuousScope;
use link::counters::{DropReason, RxCount, TxCount};
use link::lane::{Blocked, TxFlags};
use link::poll::BATCH_FRAMES;
use sim::lan::frames::{Flow, number_of};
use sim::lan::{Card, Lan, station};
use wire::MacAddr;

use crate::{flow, vnic};

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);

/// Section 1, check 1.
#[test]
fn ten_thousand_flows_over_four_rings_stay_each_on_one_ring_in_order() {
    let card = Card::new(NIC.0, &[(4, 4)], true);
    let mut lan = Lan::with_card(card).expect("a card");
    let port = lan.port;
    let stream = lan.stack_on(port).expect("a stack");
    let mut rings = BTreeMap::<u16, u16>::new();
    let mut next = BTreeMap::<u16, u32>::new();
    for number in 0..4 {
        for flow in 0..10_000_u16 {
            let flow = Flow {
                from: ([10, 1, (flow >> 8) as u8, flow as u8].into(), flow),
                ..flow_to_nic()
            };
            let ring = lan.arrive(&flow.frame(number)).expect("taken");
            assert_eq!(*rings.entry(flow.from.1).or_insert(ring), ring);
            if flow.from.1.is_multiple_of(700) {
                lan.settle();
                check_order(&mut lan, stream, &mut next);
            }
        }
    }
    lan.settle();
    check_order(&mut lan, stream, &mut next);
    assert!(next.len() == 10_000 && next.values().all(|next| *next == 4));
    for ring in 0..4 {
        let flows = rings.values().filter(|at| **at == ring).count();
        assert!((1500..=3500).contains(&flows), "{flows} flows on {ring}");
    }
}

fn check_order(lan: &mut Lan, stream: link::StreamId, next: &mut BTreeMap<u16, u32>) {
    for (to, frame) in core::mem::take(&mut lan.shell.delivered) {
        assert_eq!(to, stream);
        let mut source = [0; 2];
        frame.chain.copy_to_slice(34, &mut source);
        let next = next.entry(u16::from_be_bytes(source)).or_default();
        assert_eq!(number_of(&frame.chain), *next);
        *next += 1;
    }
}

fn flow_to_nic() -> Flow {
    flow(NIC, PEER)
}

/// Section 1, check 2.
#[test]
fn vnics_beyond_the_groups_share_the_default_one_and_beyond_its_filters_it_is_promiscuous() {
    let card = Card::new(NIC.0, &[(2, 3), (1, 1), (1, 1)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    for last in 1..=4 {
        vnic(&mut lan, last, None);
        assert_eq!(card.promiscuous(), None, "VNIC {last}");
    }
    let (_, stream) = vnic(&mut lan, 5, None);
    assert_eq!(card.promiscuous(), Some(PromiscuousScope::Group(0)));
    assert!(lan.links.info(lan.port).expect("the port").is_promiscuous);
    for last in 1..=5 {
        let frame = flow(station(last), PEER).frame(0);
        let ring = lan.arrive(&frame).expect("taken");
        let expected = [2..3, 3..4, 0..2, 0..2, 0..2];
        assert!(
            expected[usize::from(last) - 1].contains(&ring),
            "VNIC {last}"
        );
    }
    lan.settle();
    assert_eq!(lan.take(stream).len(), 1);
}

/// Section 1, check 3.
#[test]
fn two_vnics_exchange_unicast_frames_without_the_wire() {
    let mut lan = Lan::with_card(Card::new(NIC.0, &[(1, 8)], true)).expect("a card");
    let (one, one_stream) = vnic(&mut lan, 1, None);
    let (two, two_stream) = vnic(&mut lan, 2, None);
    lan.send(one, &flow(station(2), station(1)).frame(7));
    lan.send(two, &flow(station(1), station(2)).frame(8));
    assert_eq!(
        lan.take(two_stream),
        [flow(station(2), station(1)).frame(7)]
    );
    assert_eq!(
        lan.take(one_stream),
        [flow(station(1), station(2)).frame(8)]
    );
    assert!(lan.take_wire().is_empty());
    for link in [one, two] {
        let counters = lan.lanes[0].counters(link).expect("a client");
        assert_eq!(counters.rx.get(RxCount::Local), 1);
        assert_eq!(counters.tx.get(TxCount::Packets), 1);
    }
}

#[test]
fn a_broadcast_reaches_every_neighbour_and_the_wire_but_not_its_sender() {
    let mut lan = Lan::with_card(Card::new(NIC.0, &[(1, 8)], true)).expect("a card");
    let (one, sender) = vnic(&mut lan, 1, None);
    let others: Vec<_> = (2..5).map(|last| vnic(&mut lan, last, None).1).collect();
    let frame = flow(MacAddr::BROADCAST, station(1)).frame(0);
    lan.send(one, &frame);
    assert!(lan.take(sender).is_empty());
    for other in others {
        assert_eq!(lan.take(other), std::slice::from_ref(&frame));
    }
    assert_eq!(lan.take_wire(), [frame]);
}

#[test]
fn a_multicast_reaches_members_only() {
    let card = Card::new(NIC.0, &[(1, 8)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let group = MacAddr([0x33, 0x33, 0, 0, 0, 1]);
    let (one, _) = vnic(&mut lan, 1, None);
    let (_, member) = vnic(&mut lan, 2, None);
    let (_, third) = vnic(&mut lan, 3, None);
    lan.links.join(member, group).expect("a member");
    assert_eq!(card.multicasts(), [group.0]);
    let frame = flow(group, station(1)).frame(0);
    lan.send(one, &frame);
    lan.arrive(&flow(group, PEER).frame(1));
    lan.settle();
    assert_eq!(lan.take(member).len(), 2);
    assert!(lan.take(third).is_empty());
    lan.links.leave(member, group).expect("it was a member");
    assert!(card.multicasts().is_empty());
}

#[test]
fn an_etherstub_switches_and_has_no_wire() {
    let mut lan = Lan::with_etherstub().expect("an etherstub");
    let (one, _) = vnic(&mut lan, 1, None);
    let (_, stream) = vnic(&mut lan, 2, None);
    lan.send(one, &flow(station(2), station(1)).frame(0));
    lan.send(one, &flow(PEER, station(1)).frame(1));
    lan.send(one, &flow(MacAddr::BROADCAST, station(1)).frame(2));
    assert_eq!(lan.take(stream).len(), 2);
    let drops = &lan.lanes[0].counters(one).expect("a client").drops;
    assert_eq!(drops.get(DropReason::NoWire), 1);
}

#[test]
fn a_group_that_is_alone_with_its_address_needs_no_lookup_and_misses_nothing() {
    let mut lan = Lan::with_card(Card::new(NIC.0, &[(1, 1), (1, 1)], true)).expect("a card");
    let (link, stream) = vnic(&mut lan, 1, None);
    let frame = flow(station(1), PEER).frame(0);
    assert_eq!(lan.arrive(&frame), Some(1));
    lan.settle();
    // The ring is lost: the same frame comes by the default group and is found in software.
    let lost = sim::lan::frames::received(&lan.shell.pool, &frame).expect("a buffer");
    let mut control = lan.card.as_ref().expect("a card").control();
    control.remove_address(1, station(1).0);
    let everything = control.set_promiscuous(PromiscuousScope::Group(0), true);
    everything.expect("promiscuous");
    assert_eq!(lan.card.as_ref().expect("a card").arrive(lost), Some(0));
    lan.settle();
    assert_eq!(lan.take(stream), [frame.clone(), frame]);
    let counters = lan.lanes[0].counters(link).expect("a client");
    assert_eq!(counters.rx.get(RxCount::Packets), 1);
}

#[test]
fn a_chain_for_two_clients_becomes_one_sub_chain_for_each() {
    let mut lan = Lan::with_card(Card::new(NIC.0, &[(1, 8)], true)).expect("a card");
    let (_, one) = vnic(&mut lan, 1, None);
    let (_, two) = vnic(&mut lan, 2, None);
    for number in 0..30 {
        let last = 1 + (number % 2) as u8;
        lan.arrive(&flow(station(last), PEER).frame(number));
    }
    lan.run(0);
    assert_eq!(lan.shell.deliveries, 2);
    assert_eq!((lan.take(one).len(), lan.take(two).len()), (15, 15));
}

/// Section 1, check 4.
#[test]
fn an_overloaded_ring_is_polled_while_another_interrupts_and_no_frame_is_lost() {
    let card = Card::new(NIC.0, &[(1, 1), (1, 1)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let (_, stream) = vnic(&mut lan, 1, None);
    let port = lan.port;
    let quiet = lan.stack_on(port).expect("a stack");
    let mut number = 0;
    let mut burst = |lan: &mut Lan, frames: usize| {
        for _ in 0..frames {
            lan.arrive(&flow(station(1), PEER).frame(number));
            number += 1;
        }
    };
    burst(&mut lan, 200);
    assert_eq!(card.interrupts(1), 1);
    // The worker above is slow: polling goes on, then pauses, without interrupts.
    lan.shell.backlog = 100;
    for _ in 0..20 {
        burst(&mut lan, 30);
        lan.run(1);
    }
    assert_eq!(card.interrupts(1), 1);
    assert!(lan.lanes[1].is_polling());
    assert!(lan.lanes[1].ring_counts().get(RxCount::Polls) > 0);
    for times in 0..5 {
        lan.arrive(&flow(NIC, PEER).frame(times));
        // Nothing waits above this ring.
        lan.shell.backlog = 0;
        lan.run(0);
        lan.shell.backlog = 100;
        assert_eq!(card.interrupts(0), u64::from(times) + 1);
    }
    lan.shell.backlog = 0;
    lan.settle();
    assert!(!lan.lanes[1].is_polling());
    burst(&mut lan, 1);
    assert_eq!(card.interrupts(1), 2, "interrupts are back");
    lan.settle();
    let numbers: Vec<u32> = lan
        .take(stream)
        .iter()
        .map(|frame| last_word(frame))
        .collect();
    assert_eq!(numbers, (0..number).collect::<Vec<_>>());
    assert_eq!(card.dropped(1), 0);
    assert_eq!(lan.take(quiet).len(), 5);
}

/// Whoever is to take the frames above may wait for the lane's lock.
#[test]
fn while_frames_wait_above_an_empty_ring_is_pulled_once_a_call_and_is_not_forgotten() {
    let card = Card::new(NIC.0, &[(1, 1)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let port = lan.port;
    lan.stack_on(port).expect("a stack");
    lan.shell.backlog = 1;
    lan.arrive(&flow(NIC, PEER).frame(0));
    lan.run(0);
    for _ in 0..10 {
        let pulls = card.pulls(0);
        assert!(lan.run(0).is_busy, "the lane is to be called again");
        assert_eq!(card.pulls(0), pulls + 1);
    }
    lan.shell.backlog = 0;
    assert!(!lan.run(0).is_busy);
    lan.arrive(&flow(NIC, PEER).frame(1));
    assert_eq!(card.interrupts(0), 2, "interrupts are back");
}

#[test]
fn a_lane_that_rests_is_called_again_for_no_interrupt_would() {
    let card = Card::new(NIC.0, &[(1, 1)], true);
    let mut lan = Lan::with_card(card).expect("a card");
    let port = lan.port;
    lan.stack_on(port).expect("a stack");
    lan.shell.backlog = 1000;
    lan.arrive(&flow(NIC, PEER).frame(0));
    assert!(lan.run(0).is_busy);
    assert!(lan.run(0).is_busy, "at rest");
    lan.shell.backlog = 0;
    lan.settle();
    assert!(!lan.lanes[0].is_polling());
}

fn last_word(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame.last_chunk().expect("a number"))
}

/// Section 1, check 5.
#[test]
fn without_polling_a_stalled_client_holds_the_high_mark_and_one_chain() {
    let card = Card::new(NIC.0, &[(1, 1)], false);
    let mut lan = Lan::with_card(card).expect("a card");
    let port = lan.port;
    let stream = lan.stack_on(port).expect("a stack");
    let mut sent = 0;
    for _ in 0..60 {
        for _ in 0..BATCH_FRAMES {
            lan.arrive(&flow(NIC, PEER).frame(sent));
            sent += 1;
        }
        while lan.run(0).is_busy {}
        // The client took nothing of what it was given so far.
        lan.shell.backlog = lan.shell.delivered.len();
        assert!(lan.shell.backlog <= 1024 + BATCH_FRAMES);
    }
    let dropped = lan.lanes[0].drops().get(DropReason::RingBacklog);
    assert!(dropped > 0);
    let left = lan.card.as_ref().expect("a card").waiting(0) as u64;
    assert_eq!(
        lan.take(stream).len() as u64 + dropped + left,
        u64::from(sent)
    );
}

#[test]
fn without_polling_frames_that_come_while_the_ring_is_masked_are_not_slept_on() {
    let mut lan = Lan::with_card(Card::new(NIC.0, &[(1, 1)], false)).expect("a card");
    let port = lan.port;
    let stream = lan.stack_on(port).expect("a stack");
    for number in 0..300 {
        lan.arrive(&flow(NIC, PEER).frame(number));
    }
    lan.settle();
    assert_eq!(lan.take(stream).len(), 300);
    lan.arrive(&flow(NIC, PEER).frame(300));
    assert_eq!(lan.card.as_ref().expect("a card").interrupts(0), 2);
}

#[test]
fn a_moderated_ring_is_armed_no_earlier_than_its_spacing_and_then_takes_all() {
    let card = Card::new(NIC.0, &[(1, 1)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let port = lan.port;
    let stream = lan.stack_on(port).expect("a stack");
    lan.lanes[0].set_moderation(link::moderation::Moderation {
        per_second_max: 8000,
    });
    for number in 0..1000 {
        lan.arrive(&flow(NIC, PEER).frame(number));
        lan.run(0);
        lan.shell.now += base::Duration::from_micros(10);
    }
    // Ten milliseconds hold 80 spacings of 125 us.
    assert!(
        (70..=81).contains(&card.interrupts(0)),
        "{}",
        card.interrupts(0)
    );
    let outlook = lan.run(0);
    lan.shell.now = outlook
        .at
        .min(lan.shell.now + base::Duration::from_micros(125));
    lan.settle();
    assert_eq!(lan.take(stream).len(), 1000);
}

/// Section 1, check 6.
#[test]
fn without_descriptors_a_sender_is_blocked_after_a_thousand_frames_and_resumed_once() {
    let card = Card::new(NIC.0, &[(1, 8)], true);
    card.set_slots(64, 0);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let (link, _) = vnic(&mut lan, 1, None);
    let frames = |count: u32| -> Vec<_> {
        let one = flow(PEER, station(1));
        (0..count).map(|number| one.frame(number)).collect()
    };
    let flags = TxFlags::empty();
    assert!(lan.send_by(0, link, &frames(1000), flags).0.is_ok());
    for _ in 0..3 {
        assert_eq!(lan.send_by(0, link, &frames(1), flags).0, Err(Blocked));
    }
    let count = |lan: &Lan, what| lan.lanes[0].counters(link).expect("a client").tx.get(what);
    assert_eq!(count(&lan, TxCount::Blocked), 1);
    lan.run(0);
    assert!(lan.shell.resumed.is_empty());
    card.set_slots(64, 100);
    while lan.lanes[0].unsent() > 0 {
        lan.run(0);
    }
    lan.run(0);
    assert_eq!(lan.shell.resumed, [link]);
    assert_eq!(count(&lan, TxCount::Unblocked), 1);
    assert_eq!(lan.take_wire().len(), 1003);
}

#[test]
fn a_sender_that_ignores_being_blocked_meets_the_cap() {
    let card = Card::new(NIC.0, &[(1, 8)], true);
    card.set_slots(64, 0);
    let mut lan = Lan::with_card(card).expect("a card");
    let (link, _) = vnic(&mut lan, 1, None);
    // Copies of one frame share its buffer.
    let one = sim::lan::frames::chain(&lan.shell.pool, &flow(PEER, station(1)).frame(0));
    let one = one.expect("a buffer");
    let mut chain: link::TxChain = (0..100_500)
        .map(|_| mbuf::TxFrame {
            chain: one.share(0, usize::MAX),
            ..mbuf::TxFrame::default()
        })
        .collect();
    let outcome = lan.send_chain(0, link, &mut chain, TxFlags::empty());
    assert_eq!(outcome, Err(Blocked));
    assert_eq!(lan.lanes[0].unsent(), 100_000);
    let drops = &lan.lanes[0].counters(link).expect("a client").drops;
    assert_eq!(drops.get(DropReason::TxBacklog), 500);
}

#[test]
fn a_sender_gets_back_or_loses_what_does_not_fit_as_it_wishes() {
    let card = Card::new(NIC.0, &[(1, 8)], true);
    card.set_slots(64, 3);
    card.set_sending(false);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let (link, _) = vnic(&mut lan, 1, None);
    let frames: Vec<_> = (0..5).map(|n| flow(PEER, station(1)).frame(n)).collect();
    let (outcome, left) = lan.send_by(0, link, &frames, TxFlags::NO_QUEUE);
    assert_eq!((outcome, left.len()), (Err(Blocked), 2));
    let (outcome, left) = lan.send_by(0, link, &frames, TxFlags::DROP | TxFlags::NO_QUEUE);
    assert!(outcome.is_ok() && left.is_empty());
    let drops = &lan.lanes[0].counters(link).expect("a client").drops;
    assert_eq!(drops.get(DropReason::TxBacklog), 5);
    card.set_sending(true);
    lan.run(0);
    assert_eq!(lan.shell.resumed, [link]);
}

/// Section 1, check 8 (with the hash on addresses alone; the order of steering itself is
/// tested in core/link).
#[test]
fn with_a_hash_that_ignores_ports_all_flows_of_two_hosts_share_a_ring_in_order() {
    let card = Card::new(NIC.0, &[(4, 4)], true);
    let rss = link::rss::Rss {
        ports: link::rss::PortFields {
            tcp: false,
            udp: false,
        },
        ..link::rss::Rss::default()
    };
    let mut links = link::Links::new();
    links.attach("net0", card.control(), &rss).expect("a card");
    let rings: Vec<_> = (0..100)
        .map(|port| {
            let flow = Flow {
                from: ([10, 0, 0, 9].into(), port),
                ..flow_to_nic()
            };
            let pool = mbuf::HeapPool::new(1);
            let frame = sim::lan::frames::received(&pool, &flow.frame(0)).expect("a buffer");
            let ring = card.arrive(frame);
            // The frame must be gone before its pool.
            let mut queue = card.queue(ring.expect("taken"));
            hal::FramePort::receive(&mut queue, 1, &mut drop);
            ring
        })
        .collect();
    assert!(rings.iter().all(|ring| *ring == rings[0]));
}

#[test]
fn a_group_names_the_links_whose_addresses_it_has() {
    let card = Card::new(NIC.0, &[(2, 1), (1, 1)], true);
    let mut lan = Lan::with_card(card).expect("a card");
    let (own, _) = vnic(&mut lan, 1, None);
    let (shared, _) = vnic(&mut lan, 2, None);
    let groups = lan.links.groups(lan.port).expect("a port");
    let all: Vec<_> = groups
        .into_iter()
        .map(|group| (group.rings, group.clients))
        .collect();
    assert_eq!(all, [(0..2, vec![lan.port, shared]), (2..3, vec![own])]);
    let wrong = link::links::LinkError::WrongClass;
    assert_eq!(lan.links.groups(own), Err(wrong));
}
