//! Frames that pass a lane by meet the same fate as those that it sees.

use link::counters::{RxCount, TxCount};
use link::{LinkId, StreamId};
use sim::Random;
use sim::lan::{Card, Lan, station};
use wire::MacAddr;

use super::{flow, vnic};

/// The card's own address.
const NIC: u8 = 1;
/// Who is meant: the port's link, two VNICs, a station on the wire, one that is not there, all.
const RECEIVERS: [MacAddr; 6] = [
    MacAddr([2, 0, 0, 0, 0, NIC]),
    MacAddr([2, 0, 0, 0, 0, 5]),
    MacAddr([2, 0, 0, 0, 0, 6]),
    MacAddr([2, 0, 0, 0, 0, 9]),
    MacAddr([2, 0, 0, 0, 0, 10]),
    MacAddr::BROADCAST,
];

/// Two LANs alike: frames of one go past its lane where they may.
struct Twins {
    past: Lan,
    seen: Lan,
    /// The port's own link, and two VNICs: the same in both.
    links: Vec<(LinkId, StreamId)>,
}

impl Twins {
    fn new() -> Self {
        let both = [(); 2].map(|()| {
            let card = Card::new(station(NIC).0, &[(1, 1)], true);
            let mut lan = Lan::with_card(card).expect("a card");
            let own = (lan.port, lan.stack_on(lan.port).expect("a stack"));
            let links = vec![own, vnic(&mut lan, 5, None), vnic(&mut lan, 6, None)];
            (lan, links)
        });
        let [(past, links), (seen, others)] = both;
        assert_eq!(links, others, "both are made alike");
        Self { past, seen, links }
    }

    fn arrive(&mut self, frame: &[u8]) {
        self.past.arrive(frame);
        self.seen.arrive(frame);
    }

    fn send(&mut self, by: usize, frame: &[u8]) {
        let link = self.links[by].0;
        self.past.send_past(link, frame);
        self.seen.send(link, frame);
    }

    /// What each stream and the wire got is the same on both, and so are the counts. Order is kept
    /// between two stations, not among many.
    fn compare(&mut self, seed: u64) {
        let (own, stream) = self.links[0];
        let mut passed = self.past.receive_past(own);
        self.past.settle();
        self.seen.settle();
        passed.extend(self.past.take(stream));
        let ends = |frame: &Vec<u8>| frame[..12].to_vec();
        passed.sort_by_key(ends);
        let mut expected = self.seen.take(stream);
        expected.sort_by_key(ends);
        assert_eq!(passed, expected, "SEED={seed}");
        for (_, stream) in &self.links[1..] {
            let mut taken = [&mut self.past, &mut self.seen].map(|lan| lan.take(*stream));
            taken.iter_mut().for_each(|frames| frames.sort_by_key(ends));
            assert_eq!(taken[0], taken[1], "SEED={seed}");
        }
        assert_eq!(self.past.take_wire(), self.seen.take_wire(), "SEED={seed}");
        for (link, _) in &self.links {
            let count = |lan: &Lan| {
                let counters = lan.lanes[0].counters(*link).expect("an account");
                let sent = counters.tx.get(TxCount::Packets);
                (counters.rx.get(RxCount::Packets), sent)
            };
            assert_eq!(count(&self.past), count(&self.seen), "SEED={seed}");
        }
    }
}

#[test]
fn frames_that_pass_a_lane_by_meet_the_same_fate() {
    for seed in 1..=60 {
        let mut random = Random::new(seed);
        let mut twins = Twins::new();
        for number in 0..200 {
            let to = RECEIVERS[random.below(6) as usize];
            match random.below(3) {
                0 => twins.arrive(&flow(to, station(9)).frame(number)),
                1 => {
                    let by = random.below(3) as usize;
                    twins.send(by, &flow(to, RECEIVERS[by]).frame(number));
                }
                _ => twins.compare(seed),
            }
        }
        twins.compare(seed);
    }
}

#[test]
fn a_lane_sees_all_frames_of_a_link_with_a_limit() {
    let mut twins = Twins::new();
    for lan in [&mut twins.past, &mut twins.seen] {
        lan.links
            .set_prop(lan.port, "maxbw", "100M")
            .expect("a limit");
    }
    twins.arrive(&flow(station(NIC), station(9)).frame(1));
    let own = twins.links[0].0;
    assert!(twins.past.receive_past(own).is_empty());
    twins.compare(0);
}
