//! A queue that stops sending.

extern crate std;

use base::{Duration, Instant};
use hal::{FramePort, Remedy, Stall};

use super::frames::{TCP, is_sound};
use super::model::Window;
use super::sending::{V4, plain, rig, send, summed};
use crate::Pair;

fn watch(pair: &mut Pair<Window>) -> Stall {
    let looks = (0..10).map(|look| Instant::START + Duration::from_secs(2 * look));
    let mut found = looks.filter_map(|now| pair.watch(now));
    found.next().expect("it stands still")
}

#[test]
fn a_queue_that_stands_still_is_reset_while_the_others_go_on() {
    let (rig, mut pairs) = rig();
    let at_home = rig.pool.free();
    for pair in &mut pairs {
        pair.transmit(summed(&rig, TCP, V4)).unwrap();
        pair.kick();
    }
    let stall = watch(&mut pairs[1]);
    assert_eq!((stall.frames, stall.remedy), (1, Remedy::Reset));
    let counters = pairs[1].counters();
    assert_eq!((counters.tx_stalls, counters.tx_reset), (1, 1));
    assert_eq!(pairs[0].unsent(), 1, "the other queue keeps its frame");
    rig.with(|model| model.contexts.retain(|(queue, _), _| *queue != 1));
    pairs[1].transmit(summed(&rig, TCP, V4)).unwrap();
    let sent = send(&rig, &mut pairs[1]).unwrap();
    assert!(is_sound(&sent[0].bytes), "the card is told all anew");
    assert!(send(&rig, &mut pairs[0]).is_some());
    pairs.iter_mut().for_each(FramePort::reclaim);
    assert_eq!(rig.pool.free(), at_home);
    rig.assert_no_complaints();
}

#[test]
fn a_queue_that_does_not_stop_keeps_what_it_has() {
    let (rig, mut pairs) = rig();
    pairs[0].transmit(plain(&rig, 7)).unwrap();
    pairs[0].kick();
    rig.with(|model| model.ignores_stop = true);
    assert_eq!(watch(&mut pairs[0]).remedy, Remedy::Failed);
    assert_eq!(pairs[0].unsent(), 1);
    assert_eq!(pairs[0].counters().tx_reset, 0);
    assert_eq!(send(&rig, &mut pairs[0]).unwrap()[0].bytes, [7; 60]);
}
