//! Flow order is never changed, however buckets are moved while frames wait.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::BTreeMap;

use mbuf::HeapPool;

use crate::chain::RxChain;
use crate::headers::{Header, Packet, TCP, UDP};
use crate::rss::{BUCKETS, Indirection, PortFields, Rss};
use crate::steer::{Progress, SOFT_RING_HIGH, Steering};
use crate::testing::{mac, packet, rx, transport};
use models::Random;

const CPUS: usize = 4;

/// Soft rings whose owners take what they like, when they like.
struct Cpus {
    queues: Vec<RxChain>,
    progress: Vec<Arc<Progress>>,
    /// The next sequence number by flow, as seen above.
    next: BTreeMap<(u16, u16), u32>,
    /// Which CPUs have seen a flow.
    seen_on: BTreeMap<(u16, u16), Vec<usize>>,
    taken: usize,
}

impl Cpus {
    fn new() -> Self {
        Self {
            queues: (0..CPUS).map(|_| RxChain::new()).collect(),
            progress: (0..CPUS).map(|_| Arc::default()).collect(),
            next: BTreeMap::new(),
            seen_on: BTreeMap::new(),
            taken: 0,
        }
    }

    fn take(&mut self, cpu: usize, most: usize, seed: u64) {
        for _ in 0..most {
            let Some(frame) = self.queues[cpu].pop() else {
                return;
            };
            let header = Header::of(&frame.chain).expect("a header");
            let packet = Packet::of(&header, &frame.chain).expect("a packet");
            let flow = packet.ports.expect("ports");
            let mut number = [0; 4];
            frame
                .chain
                .copy_to_slice(packet.transport_at + 4, &mut number);
            let expected = self.next.entry(flow).or_default();
            assert_eq!(
                u32::from_be_bytes(number),
                *expected,
                "{flow:?}, SEED={seed}"
            );
            *expected += 1;
            let cpus = self.seen_on.entry(flow).or_default();
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
            self.taken += 1;
            self.progress[cpu].finish(1);
        }
    }
}

fn frame_of(pool: &HeapPool, flow: (u16, u16), number: u32, protocol: u8) -> mbuf::RxFrame {
    let (from, to) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let payload = transport(flow.0, flow.1, number);
    rx(
        pool,
        &packet((mac(1), mac(2)), from, to, protocol, &payload),
    )
}

fn run(seed: u64, load: u64, rss: Rss, protocol: u8) -> Cpus {
    let pool = HeapPool::new(4096);
    let mut random = Random::new(seed);
    let mut cpus = Cpus::new();
    let mut steering = Steering::new(&rss, cpus.progress.clone());
    let mut sent = BTreeMap::<(u16, u16), u32>::new();
    let mut total = 0;
    for _ in 0..400 {
        let mut chain = RxChain::new();
        for _ in 0..random.below(load) {
            let flow = (random.below(40) as u16, 80);
            let number = sent.entry(flow).or_default();
            chain.push(frame_of(&pool, flow, *number, protocol));
            *number += 1;
            total += 1;
        }
        steering.spread(&mut chain, &mut |cpu, frames| {
            cpus.queues[usize::from(cpu)].append(frames);
        });
        if random.below(4) == 0 {
            let mut table = Indirection::even(CPUS as u16);
            for bucket in 0..BUCKETS {
                table.set(bucket, random.below(CPUS as u64) as u16);
            }
            steering.resteer(table);
        }
        for cpu in 0..CPUS {
            let most = random.below(12) as usize;
            cpus.take(cpu, most, seed);
        }
    }
    while steering.waiting() > 0 {
        (0..CPUS).for_each(|cpu| cpus.take(cpu, usize::MAX, seed));
        steering.spread(&mut RxChain::new(), &mut |cpu, frames| {
            cpus.queues[usize::from(cpu)].append(frames);
        });
    }
    assert_eq!(
        cpus.taken + steering.dropped() as usize,
        total,
        "SEED={seed}"
    );
    assert_eq!(steering.dropped(), 0, "SEED={seed}");
    cpus
}

#[test]
fn frames_of_a_flow_stay_in_order_whatever_is_resteered() {
    for seed in 1..=40 {
        let cpus = run(seed, 20, Rss::default(), TCP);
        let moved = cpus.seen_on.values().filter(|cpus| cpus.len() > 1).count();
        assert!(moved > 10, "only {moved} flows ever moved, SEED={seed}");
    }
}

#[test]
fn a_busy_flow_leaves_a_busy_cpu() {
    let pool = HeapPool::new(4096);
    let mut cpus = Cpus::new();
    let mut steering = Steering::new(&Rss::default(), cpus.progress.clone());
    let mut number = 0;
    for round in 0..100 {
        if round == 50 {
            let mut elsewhere = Indirection::even(1);
            (0..BUCKETS).for_each(|bucket| elsewhere.set(bucket, 1));
            steering.resteer(elsewhere);
        }
        let mut chain: RxChain = (number..number + 8)
            .map(|number| frame_of(&pool, (1, 2), number, TCP))
            .collect();
        number += 8;
        steering.spread(&mut chain, &mut |cpu, frames| {
            cpus.queues[usize::from(cpu)].append(frames);
        });
        // CPU 0 never catches up; CPU 1 would.
        cpus.take(0, 7, 0);
        cpus.take(1, 100, 0);
    }
    assert_eq!(cpus.seen_on[&(1, 2)], [0, 1]);
    assert_eq!(cpus.taken as u32, number);
}

#[test]
fn who_finishes_is_told_that_parked_frames_wait() {
    let pool = HeapPool::new(64);
    let progress: Vec<Arc<Progress>> = (0..2).map(|_| Arc::default()).collect();
    let mut steering = Steering::new(&Rss::default(), progress.clone());
    let mut handed = Vec::new();
    let mut send = |steering: &mut Steering, count: u32| {
        let mut chain: RxChain = (0..count)
            .map(|number| frame_of(&pool, (1, 2), number, TCP))
            .collect();
        steering.spread(&mut chain, &mut |cpu, frames| {
            handed.push((cpu, frames.len()))
        });
    };
    send(&mut steering, 3);
    assert!(!progress[0].finish(1));
    let mut elsewhere = Indirection::even(1);
    (0..BUCKETS).for_each(|bucket| elsewhere.set(bucket, 1));
    steering.resteer(elsewhere);
    send(&mut steering, 2);
    assert_eq!(steering.waiting(), 4);
    assert!(progress[0].finish(2));
    send(&mut steering, 0);
    assert_eq!(handed, [(0, 3), (1, 2)]);
}

#[test]
fn a_hash_without_ports_spreads_worse_and_orders_as_well() {
    let rss = Rss {
        ports: PortFields {
            tcp: false,
            udp: false,
        },
        ..Rss::default()
    };
    for seed in 1..=10 {
        run(seed, 8, rss, TCP);
        run(seed, 8, rss, UDP);
    }
}

#[test]
fn a_cpu_that_takes_nothing_holds_the_high_mark_and_one_chain_at_most() {
    let pool = HeapPool::new(4096);
    let progress: Vec<Arc<Progress>> = (0..1).map(|_| Arc::default()).collect();
    let mut steering = Steering::new(&Rss::default(), progress.clone());
    let mut queue = RxChain::new();
    let longest = 64;
    for number in 0..40 {
        let mut chain: RxChain = (0..longest)
            .map(|_| frame_of(&pool, (1, 2), number, TCP))
            .collect();
        steering.spread(&mut chain, &mut |_, frames| queue.append(frames));
        assert!(queue.len() as u64 <= SOFT_RING_HIGH + longest);
    }
    assert_eq!(steering.dropped(), 40 * longest - queue.len() as u64);
    assert!(steering.dropped() > 0);
    progress[0].finish(queue.len() as u64);
    assert_eq!(steering.waiting(), 0);
}

#[test]
fn a_bucket_whose_frames_were_dropped_still_moves() {
    let pool = HeapPool::new(4096);
    let progress: Vec<Arc<Progress>> = (0..2).map(|_| Arc::default()).collect();
    let mut steering = Steering::new(&Rss::default(), progress.clone());
    let mut counts = [0; 2];
    for number in 0..20 {
        let mut chain: RxChain = (0..100)
            .map(|_| frame_of(&pool, (1, 2), number, TCP))
            .collect();
        steering.spread(&mut chain, &mut |cpu, frames| {
            counts[usize::from(cpu)] += frames.len()
        });
    }
    assert!(steering.dropped() > 0);
    progress[0].finish(counts[0] as u64);
    let mut elsewhere = Indirection::even(1);
    (0..BUCKETS).for_each(|bucket| elsewhere.set(bucket, 1));
    steering.resteer(elsewhere);
    let mut chain: RxChain = (0..5).map(|_| frame_of(&pool, (1, 2), 99, TCP)).collect();
    steering.spread(&mut chain, &mut |cpu, frames| {
        counts[usize::from(cpu)] += frames.len()
    });
    assert_eq!(counts[1], 5);
}
