//! Flow order through lanes, whatever the control plane does meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Duration;
use link::RxChain;
use link::flow::{FlowProps, Rule};
use link::lane::TxFlags;
use link::rss::{BUCKETS, Indirection, Rss};
use link::steer::{Progress, Steering};
use sim::lan::frames::{Flow, TCP, UDP, number_of};
use sim::lan::{Card, Lan, station};
use sim::{Random, for_each_seed};
use wire::MacAddr;

use crate::{flow, vnic};

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);

/// Numbers each flow's frames, and checks them on the other side.
#[derive(Default)]
struct Numbers {
    sent: BTreeMap<(u8, u16), u32>,
    seen: BTreeMap<(u8, u16), u32>,
}

impl Numbers {
    fn next(&mut self, flow: &Flow) -> Vec<u8> {
        let number = self.sent.entry((flow.protocol, flow.from.1)).or_default();
        *number += 1;
        flow.frame(*number)
    }

    /// Frames may be lost, but never come twice or late.
    fn check(&mut self, chain: &mbuf::Chain) {
        let mut head = [0; 36];
        chain.copy_to_slice(0, &mut head);
        let port = u16::from_be_bytes([head[34], head[35]]);
        let seen = self.seen.entry((head[23], port)).or_default();
        let number = number_of(chain);
        assert!(number > *seen, "{number} after {seen} of port {port}");
        *seen = number;
    }
}

fn random_flow(random: &mut Random, dst: MacAddr, src: MacAddr) -> Flow {
    let host = |mac: MacAddr| [10, 0, 0, mac.0[5]].into();
    Flow {
        from: (host(src), 1 + random.below(6) as u16),
        to: (host(dst), 80),
        protocol: if random.chance(50) { TCP } else { UDP },
        ..flow(dst, src)
    }
}

/// Changes of rules, limits and priorities, all of which move flows between queues.
fn disturb(lan: &mut Lan, link: link::LinkId, random: &mut Random) {
    let rules = [
        "transport=udp",
        "transport=tcp",
        "transport=udp,local_port=80",
    ];
    let rule = Rule::parse(rules[random.below(3) as usize]).expect("a rule");
    let links = &mut lan.links;
    let _ = match random.below(8) {
        0 => links.add_flow(link, "f1", rule, FlowProps::default()),
        1 => links.remove_flow("f1"),
        2 => links.set_flow_prop("f1", "maxbw", "3M"),
        3 => links.set_flow_prop("f1", "priority", "high"),
        4 => links.set_flow_prop("f1", "priority", "low"),
        5 => links.set_prop(link, "maxbw", "5M"),
        6 => links.reset_prop(link, "maxbw"),
        _ => links.set_prop(link, "priority", "low"),
    };
}

#[test]
fn received_frames_keep_their_order_while_rules_and_limits_change() {
    for_each_seed(20, |seed| {
        let mut random = Random::new(seed);
        let card = Card::new(NIC.0, &[(2, 2), (1, 1)], true);
        let mut lan = Lan::with_card(card).expect("a card");
        let (link, _) = vnic(&mut lan, 1, None);
        let mut numbers = Numbers::default();
        for _ in 0..400 {
            for _ in 0..random.below(20) {
                let flow = random_flow(&mut random, station(1), PEER);
                lan.arrive(&numbers.next(&flow));
            }
            disturb(&mut lan, link, &mut random);
            lan.shell.backlog = random.below(300) as usize;
            for ring in 0..3 {
                lan.run(ring);
            }
            lan.shell.now += Duration::from_micros(random.below(2000));
            for (_, frame) in std::mem::take(&mut lan.shell.delivered) {
                numbers.check(&frame.chain);
            }
        }
        assert!(numbers.seen.len() > 8);
    });
}

#[test]
fn sent_frames_keep_their_order_while_rules_change_and_the_card_stalls() {
    for_each_seed(20, |seed| {
        let mut random = Random::new(seed);
        let card = Card::new(NIC.0, &[(1, 16)], true);
        let mut lan = Lan::with_card(card.clone()).expect("a card");
        let (link, _) = vnic(&mut lan, 1, None);
        let mut numbers = Numbers::default();
        for _ in 0..400 {
            let frames: Vec<_> = (0..random.below(20))
                .map(|_| {
                    let flow = random_flow(&mut random, PEER, station(1));
                    numbers.next(&flow)
                })
                .collect();
            card.set_slots(64, random.below(30) as usize);
            card.set_sending(random.chance(70));
            let _ = lan.send_by(0, link, &frames, TxFlags::empty());
            disturb(&mut lan, link, &mut random);
            lan.run(0);
            lan.shell.now += Duration::from_micros(random.below(2000));
            for (_, frame) in card.take_sent() {
                numbers.check(&frame.chain);
            }
        }
        assert!(numbers.seen.len() > 8);
    });
}

/// Soft rings of the lanes' frames, whose CPUs take what they like.
struct Cpus {
    steering: Steering,
    progress: Vec<Arc<Progress>>,
    queues: Vec<RxChain>,
}

impl Cpus {
    fn new(count: usize) -> Self {
        let progress: Vec<Arc<Progress>> = (0..count).map(|_| Arc::default()).collect();
        Self {
            steering: Steering::new(&Rss::default(), progress.clone()),
            queues: progress.iter().map(|_| RxChain::new()).collect(),
            progress,
        }
    }

    fn spread(&mut self, mut chain: RxChain) {
        let queues = &mut self.queues;
        self.steering.spread(&mut chain, &mut |cpu, frames| {
            queues[usize::from(cpu)].append(frames);
        });
    }

    fn take(&mut self, cpu: usize, most: u64, numbers: &mut Numbers) {
        for _ in 0..most {
            let Some(frame) = self.queues[cpu].pop() else {
                return;
            };
            numbers.check(&frame.chain);
            self.progress[cpu].finish(1);
        }
    }
}

#[test]
fn frames_keep_their_order_from_the_card_to_the_last_cpu_while_everything_changes() {
    for_each_seed(20, |seed| {
        let mut random = Random::new(seed);
        let card = Card::new(NIC.0, &[(1, 2), (1, 1)], true);
        let mut lan = Lan::with_card(card).expect("a card");
        let (link, _) = vnic(&mut lan, 1, None);
        let (mut numbers, mut cpus) = (Numbers::default(), Cpus::new(3));
        for _ in 0..400 {
            for _ in 0..random.below(20) {
                let flow = random_flow(&mut random, station(1), PEER);
                lan.arrive(&numbers.next(&flow));
            }
            disturb(&mut lan, link, &mut random);
            lan.run(1);
            lan.shell.now += Duration::from_micros(random.below(2000));
            let frames = std::mem::take(&mut lan.shell.delivered);
            cpus.spread(frames.into_iter().map(|(_, frame)| frame).collect());
            if random.chance(20) {
                let mut ways = Indirection::even(3);
                (0..BUCKETS).for_each(|bucket| ways.set(bucket, random.below(3) as u16));
                cpus.steering.resteer(ways);
            }
            for cpu in 0..3 {
                cpus.take(cpu, random.below(12), &mut numbers);
            }
            lan.shell.backlog = cpus.steering.waiting() as usize;
        }
        assert!(numbers.seen.len() > 8);
        assert_eq!(cpus.steering.dropped(), 0);
    });
}
