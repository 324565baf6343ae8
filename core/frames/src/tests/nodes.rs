//! CPUs of two nodes: whose frames they get, and where these go back.

use std::vec::Vec;

use super::{Memory, memory, nodes};
use crate::{BATCH, FrameNo, HUGE_PAGES, LocalFrames, Node, PAGES_MAX, Request, Urgency};

const ORDINARY: Urgency = Urgency::Ordinary;
/// Frames of each node, and the first of node 1.
const EACH: FrameNo = 2 * PAGES_MAX;

fn machine() -> (Memory, [LocalFrames; 2]) {
    let starts = [(0, Node(0)), (EACH, Node(1))];
    let memory = memory(nodes(&starts, &[(0, 2 * EACH as usize)]));
    let cpus = [const { LocalFrames::new() }; 2];
    for (cpu, node) in cpus.iter().zip(0..) {
        cpu.settle(Node(node), &memory.zones);
    }
    (memory, cpus)
}

/// Free frames of each node, and those that CPUs of nodes 0 and 1 took of it.
fn nodes_of(memory: &Memory) -> Vec<(u64, u64, u64)> {
    let of = |node: u8| {
        let stats = memory
            .zones
            .stats()
            .filter(move |zone| zone.node == Node(node));
        stats.fold((0, 0, 0), |sum, zone| {
            let (free, taken) = (zone.free(), zone.taken);
            (sum.0 + free, sum.1 + taken[0], sum.2 + taken[1])
        })
    };
    [of(0), of(1)].into()
}

#[test]
fn each_cpu_gets_the_frames_of_its_own_node() {
    let (memory, cpus) = machine();
    for (cpu, node) in cpus.iter().zip(0..) {
        for _ in 0..1000 {
            let frame = cpu.alloc(&memory, ORDINARY).unwrap();
            assert_eq!(frame.number() / EACH, node);
        }
        let huge = Request::new(HUGE_PAGES, ORDINARY);
        let page = cpu.alloc_extent(&memory, huge).unwrap();
        assert_eq!(page.first() / EACH, node);
    }
    let counts = nodes_of(&memory);
    assert_eq!(
        (counts[0].2, counts[1].1),
        (0, 0),
        "nobody took the other's"
    );
    assert_eq!(counts[0].0, EACH - counts[0].1);
}

#[test]
fn a_node_that_is_empty_borrows_and_it_is_counted() {
    let (memory, cpus) = machine();
    let reserve = memory.zones.reserve() / 2;
    for _ in 0..EACH - reserve {
        assert!(cpus[1].alloc(&memory, ORDINARY).unwrap().number() >= EACH);
    }
    let borrowed = cpus[1].alloc(&memory, ORDINARY).unwrap();
    assert!(borrowed.number() < EACH);
    let counts = nodes_of(&memory);
    assert_eq!(counts[0].2, BATCH as u64, "a batch was borrowed");
    assert_eq!(counts[1].2, EACH - reserve);
}

#[test]
fn a_frame_of_another_node_goes_home_and_is_not_given_out_again() {
    let (memory, cpus) = machine();
    let theirs: Vec<_> = (0..100)
        .map(|_| cpus[0].alloc(&memory, ORDINARY).unwrap())
        .collect();
    cpus[0].flush(&memory);
    for frame in theirs {
        cpus[1].free(&memory, frame);
        let next = cpus[1].alloc(&memory, ORDINARY).unwrap();
        assert!(next.number() >= EACH);
    }
    let way = cpus[1].far.len() as u64;
    assert!(way <= BATCH as u64);
    assert_eq!(nodes_of(&memory)[0].0, EACH - way);
    cpus[1].flush(&memory);
    assert_eq!(nodes_of(&memory)[0].0, EACH);
}

#[test]
fn huge_pages_of_another_node_do_not_rest() {
    let (memory, cpus) = machine();
    let huge = Request::new(HUGE_PAGES, ORDINARY);
    let page = cpus[0].alloc_extent(&memory, huge).unwrap();
    cpus[0].flush(&memory);
    cpus[1].free_extent(&memory, page);
    assert_eq!(nodes_of(&memory)[0].0, EACH);
}

#[test]
fn frames_on_their_way_home_help_who_finds_nothing_else() {
    let (memory, cpus) = machine();
    let take_all = |cpu: &LocalFrames| {
        core::iter::from_fn(|| cpu.alloc(&memory, Urgency::Critical)).collect::<Vec<_>>()
    };
    let mut all = take_all(&cpus[0]);
    assert_eq!(all.len() as u64, 2 * EACH);
    let first = all.swap_remove(0);
    cpus[1].free(&memory, first);
    assert_eq!(cpus[1].far.len(), 1);
    assert_eq!(take_all(&cpus[1]).len(), 1);
}

#[test]
fn a_batch_of_both_nodes_is_divided() {
    let (memory, cpus) = machine();
    let mut mixed = Vec::new();
    for _ in 0..10 {
        mixed.extend(
            cpus.each_ref()
                .map(|cpu| cpu.alloc(&memory, ORDINARY).unwrap().into_number()),
        );
    }
    cpus.iter().for_each(|cpu| cpu.flush(&memory));
    memory.zones.give(&memory.table, &mixed);
    assert!(nodes_of(&memory).iter().all(|&(free, _, _)| free == EACH));
    assert!(
        memory
            .zones
            .stats()
            .all(|zone| zone.blocks[10] == zone.managed / PAGES_MAX)
    );
}
