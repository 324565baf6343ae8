use alloc::vec::Vec;
use core::net::Ipv4Addr;
use std::collections::BTreeSet;

use base::{Duration, Instant};
use mbuf::{Chain, HeapPool};
use wire::{ArpOperation, ArpRepr, EtherType, MacAddr, TcpFlags};

use super::flows::{ASKED_IDLE, FLOWS_MAX, IDLE};
use super::{Ends, NotMoved, QUEUES_MAX, Queues, STACK, Steered, Target, begins_or_ends, share};
use crate::headers::{ICMP, TCP, UDP};
use crate::testing::{chain, ethernet, ipv4, mac, transport};

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN_ACK: TcpFlags = TcpFlags::FIN.with(ACK);
const SYN_ACK: TcpFlags = SYN.with(ACK);
const RST: TcpFlags = TcpFlags::RST;
const HTTP: u16 = 80;

/// A link with queues, and frames for it.
struct World {
    pool: HeapPool,
    queues: Queues,
    now: Instant,
}

fn peer(number: u32) -> (Ipv4Addr, u16) {
    let host = Ipv4Addr::from_bits(0x0a01_0000 + number / 1000);
    (host, (1024 + number % 1000) as u16)
}

fn segment(flags: TcpFlags, ports: (u16, u16)) -> Vec<u8> {
    let mut bytes = transport(ports.0, ports.1, 7);
    bytes.resize(20, 0);
    (bytes[12], bytes[13]) = (5 << 4, flags.0);
    bytes
}

fn in_ip(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let packet = ipv4(from, to, protocol, payload);
    ethernet(mac(1), mac(2), EtherType::Ipv4, &packet)
}

impl World {
    fn new(queues: &[u16]) -> Self {
        let mut world = Self {
            pool: HeapPool::new(64),
            queues: Queues::new([3, 5]).expect("memory"),
            now: Instant::from_nanos(1 << 40),
        };
        queues
            .iter()
            .for_each(|queue| world.queues.join(*queue, true));
        world
    }

    fn comes(&mut self, frame: &[u8]) -> Target {
        let frame: Chain = chain(&self.pool, frame);
        self.queues.receive(&frame, self.now)
    }

    /// A segment from a peer.
    fn segment(&mut self, number: u32, flags: TcpFlags, port: u16) -> Target {
        let (host, from) = peer(number);
        self.comes(&in_ip(host, US, TCP, &segment(flags, (from, port))))
    }

    /// A segment to a peer.
    fn answer(&mut self, queue: u16, number: u32, flags: TcpFlags, port: u16) {
        let (host, to) = peer(number);
        let bytes = in_ip(US, host, TCP, &segment(flags, (port, to)));
        let frame = chain(&self.pool, &bytes);
        // As the shell does, which needs a lock for the second.
        if begins_or_ends(&frame) {
            self.queues.send(queue, &frame, self.now);
        }
    }

    fn datagram(&mut self, number: u32, port: u16) -> Target {
        let (host, from) = peer(number);
        self.comes(&in_ip(host, US, UDP, &transport(from, port, 0)))
    }

    /// A peer connects; the queue that took it.
    fn connect(&mut self, number: u32) -> u16 {
        let Target::Queue(queue) = self.segment(number, SYN, HTTP) else {
            panic!("nobody takes a SYN");
        };
        self.answer(queue, number, SYN_ACK, HTTP);
        assert_eq!(self.segment(number, ACK, HTTP), Target::Queue(queue));
        queue
    }

    fn steered(&self, queue: u16, why: Steered) -> u64 {
        self.queues
            .counts(queue)
            .map_or(0, |counts| counts.get(why))
    }
}

#[test]
fn a_single_queue_gets_all_and_nothing_is_counted() {
    let mut world = World::new(&[3]);
    assert_eq!(world.segment(1, SYN, HTTP), Target::Queue(3));
    assert_eq!(world.comes(&[0; 60]), Target::Queue(3));
    let counts = world.queues.counts(3).expect("a queue");
    assert!(counts.iter().all(|(_, count)| count == 0));
}

#[test]
fn connections_are_spread_and_each_stays_where_it_began() {
    let mut world = World::new(&[0, 1, 2, 3]);
    let began: Vec<u16> = (0..400).map(|number| world.connect(number)).collect();
    for queue in 0..4 {
        let share = began.iter().filter(|at| **at == queue).count();
        assert!((60..140).contains(&share), "queue {queue} has {share}");
    }
    world.queues.join(4, true);
    world.queues.take_new_flows(1, false);
    for (number, queue) in (0..400).zip(&began) {
        assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(*queue));
    }
}

#[test]
fn a_syn_that_comes_again_goes_where_it_was_answered_although_queues_came() {
    let mut world = World::new(&[0, 1]);
    let answered: Vec<Target> = (0..100)
        .map(|number| world.segment(number, SYN, HTTP))
        .collect();
    for (number, target) in (0..100).zip(&answered) {
        let Target::Queue(queue) = target else {
            panic!("nobody")
        };
        world.answer(*queue, number, SYN_ACK, HTTP);
    }
    (2..16).for_each(|queue| world.queues.join(queue, true));
    let again: Vec<Target> = (0..100)
        .map(|number| world.segment(number, SYN, HTTP))
        .collect();
    assert_eq!(answered, again);
}

#[test]
fn queues_take_connections_in_turns() {
    for queues in [&[0, 1][..], &[0, 1, 2, 3], &[1, 5, 15]] {
        let mut world = World::new(queues);
        let began: Vec<u16> = (0..60).map(|number| world.connect(number)).collect();
        for queue in queues {
            let share = began.iter().filter(|at| *at == queue).count();
            assert_eq!(share, 60 / queues.len(), "of queue {queue}");
        }
    }
}

#[test]
fn a_queue_that_comes_late_takes_its_turns_and_no_more() {
    let mut world = World::new(&[0, 1]);
    (0..1000).for_each(|number| _ = world.connect(number));
    world.queues.join(2, true);
    let began = (1000..1300).filter(|number| world.connect(*number) == 2);
    assert_eq!(began.count(), 100);
}

#[test]
fn a_syn_that_comes_again_before_it_was_answered_goes_to_the_same_queue() {
    let mut world = World::new(&[0, 1, 2]);
    let syns = |world: &mut World| -> Vec<Target> {
        let each = (0..500).map(|number| world.segment(number, SYN, HTTP));
        each.collect()
    };
    let first = syns(&mut world);
    assert_eq!(syns(&mut world), first);
    world.queues.take_new_flows(1, false);
    let again = syns(&mut world);
    assert!(again.iter().all(|target| *target != Target::Queue(1)));
    let others = first.iter().zip(&again).filter(|(before, after)| {
        assert!(**before == Target::Queue(1) || before == after);
        before == after
    });
    assert!(others.count() > 300);
}

#[test]
fn a_syn_begins_no_flow() {
    let mut world = World::new(&[0, 1]);
    for number in 0..50 {
        let Target::Queue(_) = world.segment(number, SYN, HTTP) else {
            panic!("nobody takes it");
        };
        let elder = Target::Queue(0);
        assert_eq!(world.segment(number, ACK, HTTP), elder, "as without it");
    }
}

#[test]
fn syns_that_nobody_answers_push_out_no_flow_and_are_no_more_after_a_while() {
    let mut world = World::new(&[0, 1]);
    let began: Vec<u16> = (0..1000).map(|number| world.connect(number)).collect();
    let flood = |world: &mut World, from: u32| {
        let numbers = from..from + 4 * FLOWS_MAX as u32;
        let before = world.steered(0, Steered::Turn) + world.steered(1, Steered::Turn);
        numbers.for_each(|number| _ = world.segment(number, SYN, HTTP));
        world.steered(0, Steered::Turn) + world.steered(1, Steered::Turn) - before
    };
    let noted = flood(&mut world, 1 << 20);
    assert!((FLOWS_MAX as u64 / 3..=FLOWS_MAX as u64 * 5 / 8).contains(&noted));
    assert_eq!(flood(&mut world, 1 << 21), 0);
    for (number, queue) in (0..1000).zip(&began) {
        assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(*queue));
    }
    world.now += ASKED_IDLE;
    assert!(flood(&mut world, 1 << 22) >= FLOWS_MAX as u64 / 3);
}

#[test]
fn new_connections_go_only_to_queues_that_take_them() {
    let mut world = World::new(&[0, 1, 2]);
    world.queues.take_new_flows(0, false);
    let took: BTreeSet<u16> = (0..100).map(|number| world.connect(number)).collect();
    assert_eq!(took, BTreeSet::from([1, 2]));
    assert_eq!(
        world.steered(0, Steered::Hash) + world.steered(0, Steered::Turn),
        0
    );
}

#[test]
fn a_connection_that_nobody_takes_is_not_begun_and_others_go_on() {
    let mut world = World::new(&[0, 1]);
    let queue = world.connect(1);
    world.queues.take_new_flows(0, false);
    world.queues.take_new_flows(1, false);
    assert_eq!(world.segment(2, SYN, HTTP), Target::Nobody);
    assert_eq!(world.queues.unwanted(), 1);
    assert_eq!(world.segment(1, ACK, HTTP), Target::Queue(queue));
    assert_eq!(world.datagram(3, 53), Target::Queue(0), "the lowest");
    world.queues.leave(1);
    assert_eq!(
        world.segment(2, SYN, HTTP),
        Target::Nobody,
        "the only one neither"
    );
}

#[test]
fn what_began_while_a_queue_was_alone_stays_its_own() {
    let mut world = World::new(&[2]);
    world.queues.join(0, true);
    assert_eq!(world.segment(1, ACK, HTTP), Target::Queue(2));
    assert_eq!(world.steered(2, Steered::Elder), 1);
    world.queues.leave(2);
    world.queues.join(2, true);
    assert_eq!(
        world.segment(1, ACK, HTTP),
        Target::Queue(0),
        "then the other was alone"
    );
}

#[test]
fn flows_of_a_queue_that_is_gone_go_to_one_that_lives() {
    let mut world = World::new(&[0, 1, 2]);
    world.queues.take_new_flows(0, false);
    let lost = (0..)
        .find(|number| world.connect(*number) == 2)
        .expect("one");
    world.queues.leave(2);
    assert_ne!(world.segment(lost, ACK, HTTP), Target::Queue(2));
    world.queues.join(2, true);
    assert_eq!(
        world.segment(lost, ACK, HTTP),
        Target::Queue(0),
        "the elder refuses it"
    );
}

#[test]
fn a_reset_that_is_sent_ends_a_flow_and_one_that_is_received_does_not() {
    let mut world = World::new(&[0, 1]);
    let queue = (0..).map(|number| (number, world.connect(number)));
    let (number, queue) = queue.take(50).find(|(_, queue)| *queue == 1).expect("one");
    assert_eq!(world.segment(number, RST, HTTP), Target::Queue(queue));
    assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(queue));
    world.answer(queue, number, RST.with(ACK), HTTP);
    assert_eq!(
        world.segment(number, ACK, HTTP),
        Target::Queue(0),
        "the elder's"
    );
}

#[test]
fn a_closed_flow_is_found_until_its_peer_opens_another() {
    let mut world = World::new(&[0, 1, 2]);
    let number = (0..)
        .find(|number| world.connect(*number) == 1)
        .expect("one");
    world.answer(1, number, FIN_ACK, HTTP);
    assert_eq!(world.segment(number, FIN_ACK, HTTP), Target::Queue(1));
    world.queues.take_new_flows(1, false);
    assert_ne!(world.segment(number, SYN, HTTP), Target::Queue(1));
}

#[test]
fn answers_come_to_the_queue_of_whose_share_the_port_is() {
    let mut world = World::new(&[0, 1, 15]);
    world.queues.take_new_flows(1, false);
    for queue in [0, 1, 15] {
        let ports = share(queue).expect("a queue");
        for port in [*ports.start(), *ports.end()] {
            assert_eq!(world.datagram(9, port), Target::Queue(queue));
            assert_eq!(world.segment(9, SYN_ACK, port), Target::Queue(queue));
        }
    }
    let absent = *share(2).expect("a share").start();
    assert_ne!(world.datagram(9, absent), Target::Queue(2));
    let listener = *share(1).expect("a share").start();
    assert_ne!(
        world.segment(9, SYN, listener),
        Target::Queue(1),
        "a listener may have any port"
    );
}

#[test]
fn shares_are_apart_and_within_the_range() {
    let mut ports = BTreeSet::new();
    for queue in 0..QUEUES_MAX {
        let share = share(queue).expect("a share");
        assert!(
            share
                .clone()
                .all(|port| super::share::queue_of(port) == Some(queue))
        );
        assert!(share.count() >= 900);
        ports.extend(
            super::share(queue)
                .expect("a share")
                .filter(|port| *port <= 60999),
        );
    }
    assert_eq!(share(QUEUES_MAX), None);
    let shared = (0..=u16::MAX).filter(|port| super::share::queue_of(*port).is_some());
    assert!(shared.eq(ports), "each port has one owner");
}

fn arp(operation: ArpOperation, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let packet = ArpRepr {
        operation,
        sender_mac: mac(2),
        sender_ip: sender,
        target_mac: MacAddr([0; 6]),
        target_ip: target,
    };
    let mut bytes = alloc::vec![0; ArpRepr::BYTES];
    packet.emit(&mut bytes);
    ethernet(mac(1), mac(2), EtherType::Arp, &bytes)
}

#[test]
fn what_asks_the_host_is_answered_once_and_what_tells_is_heard_by_all() {
    let mut world = World::new(&[1, 2]);
    let other = peer(0).0;
    let echo = |kind| in_ip(other, US, ICMP, &[kind, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        world.comes(&arp(ArpOperation::Request, other, US)),
        Target::Queue(1)
    );
    assert_eq!(world.comes(&echo(8)), Target::Queue(1));
    for told in [
        arp(ArpOperation::Reply, other, US),
        arp(ArpOperation::Request, other, other),
        echo(3),
        ethernet(mac(1), mac(2), EtherType::Other(0x88cc), &[0; 46]),
    ] {
        assert_eq!(world.comes(&told), Target::All);
    }
    assert_eq!(
        (
            world.steered(1, Steered::Lowest),
            world.steered(2, Steered::All)
        ),
        (2, 4)
    );
}

#[test]
fn datagrams_of_one_peer_go_one_way_and_those_to_a_group_to_all() {
    let mut world = World::new(&[0, 1, 2, 3]);
    let took: BTreeSet<u16> = (0..100)
        .map(|number| {
            let target = world.datagram(number, 53);
            assert_eq!(world.datagram(number, 53), target);
            match target {
                Target::Queue(queue) => queue,
                _ => panic!("it is for one"),
            }
        })
        .collect();
    assert_eq!(took.len(), 4);
    let (host, port) = peer(1);
    let mut group = in_ip(host, US, UDP, &transport(port, 53, 0));
    group[0] |= 1;
    assert_eq!(world.comes(&group), Target::All);
}

#[test]
fn the_first_fragment_goes_as_a_whole_one_and_the_rest_to_all() {
    let mut world = World::new(&[0, 1, 2, 3]);
    let (host, from) = peer(5);
    let whole = in_ip(host, US, UDP, &transport(from, 53, 0));
    let fragment = |field: u16| {
        let mut frame = whole.clone();
        frame[20..22].copy_from_slice(&field.to_be_bytes());
        frame[24..26].fill(0);
        let sum = wire::Sum::new().bytes(&frame[14..34]).checksum();
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    assert_eq!(world.comes(&fragment(0x2000)), world.datagram(5, 53));
    assert_eq!(world.comes(&fragment(0x0010)), Target::All);
}

#[test]
fn a_queue_that_comes_moves_no_datagrams_but_those_that_it_gets() {
    let mut world = World::new(&[0, 1, 2]);
    let before: Vec<Target> = (0..300).map(|number| world.datagram(number, 53)).collect();
    world.queues.join(3, true);
    let moved = (0..300).zip(&before).filter(|(number, before)| {
        let after = world.datagram(*number, 53);
        assert!(after == **before || after == Target::Queue(3));
        after != **before
    });
    let moved = moved.count();
    assert!((40..110).contains(&moved), "{moved} of 300");
}

#[test]
fn a_full_table_forgets_no_live_flow_and_counts_those_that_it_did_not_learn() {
    let mut world = World::new(&[0, 1]);
    let began: Vec<u16> = (0..FLOWS_MAX as u32 * 2)
        .map(|number| world.connect_unlearned(number))
        .collect();
    assert!(world.queues.unlearned() > FLOWS_MAX as u64 / 2);
    let stays = (0..).zip(&began).take(100);
    for (number, queue) in stays {
        assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(*queue));
    }
    world.now += IDLE;
    let before = world.queues.unlearned();
    world.connect(u32::from(u16::MAX) * 100);
    assert_eq!(world.queues.unlearned(), before, "a silent one gave way");
}

#[test]
fn those_who_only_open_give_way_to_each_other_and_not_those_who_answered() {
    let mut world = World::new(&[0, 1]);
    let began: Vec<u16> = (0..1000).map(|number| world.connect(number)).collect();
    for number in 10_000..10_000 + FLOWS_MAX as u32 * 2 {
        world.answer(1, number, SYN_ACK, HTTP);
    }
    assert_eq!(world.queues.unlearned(), 0);
    for (number, queue) in (0..1000).zip(&began) {
        assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(*queue));
    }
}

impl World {
    /// Connects, wherever its later segments go.
    fn connect_unlearned(&mut self, number: u32) -> u16 {
        let Target::Queue(queue) = self.segment(number, SYN, HTTP) else {
            panic!("nobody takes a SYN");
        };
        self.answer(queue, number, SYN_ACK, HTTP);
        self.segment(number, ACK, HTTP);
        queue
    }
}

#[test]
fn a_flow_that_was_silent_for_long_is_found_as_long_as_nobody_needs_its_place() {
    let mut world = World::new(&[0, 1]);
    let queue = world.connect(7);
    world.now += Duration::from_secs(100_000);
    assert_eq!(world.segment(7, ACK, HTTP), Target::Queue(queue));
}

#[test]
fn frames_that_are_cut_anywhere_and_of_any_bytes_have_a_target() {
    let mut world = World::new(&[0, 1]);
    let (host, from) = peer(5);
    let whole = in_ip(host, US, TCP, &segment(SYN, (from, HTTP)));
    for len in 0..whole.len() {
        world.comes(&whole[..len]);
        let frame = chain(&world.pool, &whole[..len]);
        world.queues.send(1, &frame, world.now);
    }
}

#[test]
fn a_queue_that_is_absent_takes_nothing_whatever_is_said_of_it() {
    let mut world = World::new(&[0, 1]);
    world.queues.take_new_flows(5, true);
    let took: BTreeSet<u16> = (0..100).map(|number| world.connect(number)).collect();
    assert_eq!(took, BTreeSet::from([0, 1]));
}

#[test]
fn what_was_learned_is_forgotten_when_one_queue_is_left() {
    let mut world = World::new(&[0, 1]);
    let number = (0..).find(|number| world.connect(*number) == 1);
    world.queues.leave(1);
    world.queues.join(1, true);
    let target = world.segment(number.expect("one"), ACK, HTTP);
    assert_eq!(target, Target::Queue(0));
}

#[test]
fn an_elder_that_is_gone_gets_nothing() {
    let mut world = World::new(&[0, 1, 2]);
    world.queues.leave(0);
    assert_ne!(world.segment(1, ACK, HTTP), Target::Queue(0));
}

#[test]
fn a_flow_that_is_heard_again_keeps_its_place() {
    let mut world = World::new(&[0, 1]);
    let number = (0..).find(|number| world.connect(*number) == 1);
    let number = number.expect("one");
    world.now += IDLE;
    world.segment(number, ACK, HTTP);
    for other in 10_000..10_000 + FLOWS_MAX as u32 * 2 {
        world.connect_unlearned(other);
    }
    assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(1));
}

fn ends(number: u32) -> Ends {
    Ends {
        local: (US, HTTP).into(),
        peer: peer(number).into(),
    }
}

#[test]
fn a_connection_that_moves_is_another_queues_whoever_had_it() {
    let mut world = World::new(&[0]);
    world.queues.join(1, false);
    // The first queue's is not learned, as it was alone; another was made while there were two.
    assert_eq!(world.segment(1, ACK, HTTP), Target::Queue(0));
    assert_eq!(world.connect(2), 0);
    for number in [1, 2] {
        assert_eq!(world.queues.move_flow(ends(number), 1, world.now), Ok(()));
        assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(1));
        assert_eq!(world.queues.move_flow(ends(number), 0, world.now), Ok(()));
        assert_eq!(world.segment(number, ACK, HTTP), Target::Queue(0));
    }
    assert_eq!(
        world.segment(3, SYN, HTTP),
        Target::Queue(0),
        "it takes no new ones"
    );
}

#[test]
fn a_connection_goes_to_no_queue_that_nobody_has() {
    let mut world = World::new(&[0, 1]);
    let queue = world.connect(1);
    for to in [2, QUEUES_MAX, u16::MAX] {
        let moved = world.queues.move_flow(ends(1), to, world.now);
        assert_eq!(moved, Err(NotMoved::NoSuchQueue));
    }
    assert_eq!(world.segment(1, ACK, HTTP), Target::Queue(queue));
}

#[test]
fn what_its_queue_has_closed_gives_way_after_it_has_moved_too() {
    let mut world = World::new(&[0, 1]);
    let queue = world.connect(1);
    world.answer(queue, 1, FIN_ACK, HTTP);
    assert_eq!(
        world.queues.move_flow(ends(1), 1 - queue, world.now),
        Ok(())
    );
    assert_eq!(world.segment(1, ACK, HTTP), Target::Queue(1 - queue));
    assert!(matches!(world.segment(1, SYN, HTTP), Target::Queue(_)));
    let opened = |world: &World, why| world.steered(0, why) + world.steered(1, why);
    assert_eq!(opened(&world, Steered::Turn), 1);
    assert_eq!(opened(&world, Steered::Hash), 1, "its place is another's");
}

#[test]
fn a_connection_that_finds_no_place_does_not_move() {
    let mut world = World::new(&[0, 1]);
    let all = 4 * FLOWS_MAX as u32;
    let refused = (0..all).find(|number| {
        world.queues.move_flow(ends(*number), 1, world.now) == Err(NotMoved::NoRoom)
    });
    let refused = refused.expect("the table has an end");
    assert_eq!(
        world.segment(0, ACK, HTTP),
        Target::Queue(1),
        "others keep theirs"
    );
    let before = world.segment(refused, ACK, HTTP);
    world
        .queues
        .move_flow(ends(refused), 0, world.now)
        .unwrap_err();
    assert_eq!(world.segment(refused, ACK, HTTP), before);
}

fn ends_of(number: u32, port: u16) -> Ends {
    Ends {
        local: (US, port).into(),
        peer: peer(number).into(),
    }
}

#[test]
fn a_flow_that_is_given_to_the_stack_is_its_alone_until_it_ends_it() {
    let mut world = World::new(&[0]);
    world.segment(1, SYN, HTTP);
    world.segment(2, SYN, HTTP);
    let given = world.queues.move_flow(ends_of(1, HTTP), STACK, world.now);
    assert_eq!(given, Ok(()));
    assert_eq!(world.segment(1, ACK, HTTP), Target::Stack);
    assert_eq!(world.segment(2, ACK, HTTP), Target::Queue(0), "unlearned");
    assert!(world.queues.is_stacks_in_part());
    world.answer(STACK, 1, FIN_ACK, HTTP);
    assert_eq!(world.segment(1, ACK, HTTP), Target::Stack);
    assert!(!world.queues.is_stacks_in_part());
    assert_eq!(world.segment(1, SYN, HTTP), Target::Queue(0), "another");
}

#[test]
fn new_flows_of_a_port_of_the_stacks_are_its_and_those_begun_stay() {
    for queues in [&[0][..], &[0, 3]] {
        let mut world = World::new(queues);
        let before = world.connect(1);
        let port = (TCP, HTTP);
        assert_eq!(world.queues.move_port(port, STACK), Ok(()));
        assert_eq!(world.segment(2, SYN, HTTP), Target::Stack);
        world.answer(STACK, 2, SYN_ACK, HTTP);
        assert_eq!(world.segment(2, ACK, HTTP), Target::Stack);
        assert_eq!(world.segment(1, ACK, HTTP), Target::Queue(before));
        assert!(matches!(world.segment(3, SYN, 81), Target::Queue(_)));
        // A queue asks for the port again.
        assert_eq!(world.queues.move_port(port, 0), Ok(()));
        assert!(matches!(world.segment(4, SYN, HTTP), Target::Queue(_)));
        assert_eq!(world.segment(2, ACK, HTTP), Target::Stack);
        let nobody = world.queues.move_port(port, 5);
        assert_eq!(nobody, Err(NotMoved::NoSuchQueue));
    }
}

#[test]
fn datagrams_to_a_port_of_the_stacks_are_its_and_it_hears_what_all_hear() {
    let mut world = World::new(&[2]);
    assert_eq!(world.queues.move_port((UDP, 53), STACK), Ok(()));
    assert_eq!(world.datagram(1, 53), Target::Stack);
    assert_eq!(world.datagram(1, 54), Target::Queue(2));
    let (question, answer) = (ArpOperation::Request, ArpOperation::Reply);
    let asked = world.comes(&arp(question, peer(1).0, US));
    assert_eq!(asked, Target::Queue(2));
    let Target::Copies(to) = world.comes(&arp(answer, peer(1).0, US)) else {
        panic!("an answer is for all");
    };
    assert!(to.with_stack && to.has(2));
}

#[test]
fn what_is_the_stacks_stays_its_when_queues_go_and_come() {
    let mut world = World::new(&[0, 1]);
    assert_eq!(
        world.queues.move_flow(ends_of(1, HTTP), STACK, world.now),
        Ok(())
    );
    world.queues.leave(1);
    assert_eq!(world.segment(1, ACK, HTTP), Target::Stack);
    assert_eq!(world.segment(2, ACK, HTTP), Target::Queue(0));
    world.queues.leave(0);
    assert_eq!(world.segment(2, SYN, HTTP), Target::Stack, "all is");
    world.queues.join(4, true);
    assert_eq!(world.segment(1, ACK, HTTP), Target::Stack);
    assert_eq!(world.segment(2, SYN, HTTP), Target::Queue(4));
}
