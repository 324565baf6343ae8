//! Coming up, and going.

extern crate std;

use hal::{FramePort, LinkState, NicControl, QueuePair};

use super::model::{QUEUE_CONTROL, TAIL};
use super::model_rx::Fate;
use super::rig::{MAC, Rig, receive};
use crate::Error;
use crate::registers::*;
use intel::filters::*;
use intel::link::*;

#[test]
fn a_card_comes_up_in_parts_each_with_a_message_of_its_own() {
    let rig = Rig::new(3000);
    let (pairs, control) = rig.start(8).unwrap();
    let vectors: std::vec::Vec<u16> = pairs.iter().map(QueuePair::vector).collect();
    assert_eq!(vectors, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(control.vector(), 8);
    let shape = control.shape();
    assert_eq!(shape.mac, MAC);
    assert_eq!(
        (shape.groups[0].rings.clone(), shape.groups[0].filters),
        (0..8, 24)
    );
    for (queue, pair) in pairs.iter().enumerate() {
        assert_eq!(pair.mac(), MAC);
        assert!(pair.capabilities().tso4);
        rig.with(|model| assert_eq!(model.buffers(queue), 255));
    }
    rig.assert_no_complaints();
}

#[test]
fn the_receiver_opens_last_and_the_transmitter_before_its_queues() {
    let rig = Rig::new(3000);
    let parts = rig.start(2).unwrap();
    rig.with(|model| {
        let last = |wanted: usize| {
            let mut writes = model.writes.iter();
            writes.rposition(|(offset, _)| *offset == wanted).unwrap()
        };
        assert_eq!(last(RCTL), model.writes.len() - 1);
        for queue in 0..2 {
            assert!(last(TCTL) < last(tx_ring(queue) + QUEUE_CONTROL));
            assert!(last(rx_ring(queue) + QUEUE_CONTROL) < last(rx_ring(queue) + TAIL));
        }
        let reset = |(offset, value): &(usize, u32)| *offset == CTRL && value & CTRL_RESET != 0;
        let reset = model.writes.iter().position(reset).unwrap();
        assert!(model.writes[..reset].contains(&(EIMC, u32::MAX)));
        assert!(model.writes[reset..].contains(&(EIMC, u32::MAX)));
    });
    drop(parts);
}

#[test]
fn a_card_that_cannot_come_up_says_why() {
    let start = |change: fn(&mut super::model::Model), pairs| {
        let rig = Rig::new(600);
        rig.with(change);
        rig.start(pairs).err()
    };
    assert_eq!(start(|_| (), 0), Some(Error::Pairs(0)));
    assert_eq!(start(|_| (), 9), Some(Error::Pairs(9)));
    assert_eq!(
        start(|model| model.ignores_reset = true, 1),
        Some(Error::ResetStuck)
    );
    assert_eq!(
        start(|model| model.has_no_address = true, 1),
        Some(Error::NoAddress)
    );
    assert_eq!(
        start(|model| model.ignores_stop = true, 1),
        Some(Error::QueueStuck)
    );
    assert_eq!(
        start(|_| (), 8),
        Some(Error::NoBuffers),
        "600 are not enough for 8"
    );
    assert_eq!(Rig::new(0).start(1).err(), Some(Error::NoBuffers));
}

#[test]
fn a_card_that_failed_to_start_gives_its_memory_back_and_is_quiet() {
    let rig = Rig::new(600);
    let (buffers, at_home) = (rig.memory.buffers(), rig.pool.free());
    assert_eq!(rig.start(8).err(), Some(Error::NoBuffers));
    assert_eq!((rig.memory.buffers(), rig.pool.free()), (buffers, at_home));
    rig.with(|model| assert_eq!(model.get(RCTL) & RCTL_ENABLE, 0));
    rig.assert_no_complaints();
}

#[test]
fn parts_that_are_dropped_in_any_order_give_all_memory_back() {
    let rig = Rig::new(3000);
    let (buffers, at_home) = (rig.memory.buffers(), rig.pool.free());
    for control_goes_first in [true, false] {
        let (mut pairs, control) = rig.start(4).unwrap();
        if control_goes_first {
            drop(control);
            let frame = super::frames::ethernet(MAC, [8, 6], &[7; 60]);
            assert_eq!(rig.with(|model| model.receive(&frame)), Fate::Stored(0));
            assert_eq!(receive(&mut pairs[0]), [frame], "pairs go on without it");
            drop(pairs);
        } else {
            drop(pairs);
            drop(control);
        }
        assert_eq!((rig.memory.buffers(), rig.pool.free()), (buffers, at_home));
        rig.with(|model| assert_eq!(model.get(CTRL) & CTRL_LINK_UP, 0, "it was reset"));
    }
    rig.assert_no_complaints();
}

#[test]
fn one_pair_may_go_while_others_work() {
    let rig = Rig::new(3000);
    let (mut pairs, _control) = rig.start(3).unwrap();
    drop(pairs.remove(2));
    rig.with(|model| {
        assert!(!model.is_enabled(rx_ring(2)));
        assert!(model.is_enabled(rx_ring(1)));
        assert_eq!(
            model.receive(&super::frames::ethernet(MAC, [8, 6], &[1; 60])),
            Fate::Stored(0)
        );
    });
    assert_eq!(receive(&mut pairs[0]).len(), 1);
}

#[test]
fn a_queue_that_does_not_stop_keeps_the_memory_that_it_knows() {
    let rig = Rig::new(600);
    let (buffers, _) = (rig.memory.buffers(), ());
    let (pairs, control) = rig.start(1).unwrap();
    let at_home = rig.pool.free();
    rig.with(|model| model.ignores_stop = true);
    drop(pairs);
    drop(control);
    assert_eq!(rig.pool.free(), at_home);
    assert_eq!(rig.memory.buffers(), buffers + 2, "two rings");
}

#[test]
fn the_link_is_read_and_tells_of_its_changes_once_it_was_read() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    let up = |mbps| LinkState::Up {
        mbps,
        is_duplex: true,
    };
    assert_eq!(control.link().unwrap(), up(1000));
    let message = usize::from(control.vector());
    rig.with(|model| {
        assert_eq!(model.messages[message], 0, "what was read is no news");
        model.unplug();
        model.raise_other(CAUSE_LINK);
        assert_eq!(model.messages[message], 1, "one for each look");
    });
    assert_eq!(control.link().unwrap(), LinkState::Down);
    rig.with(|model| {
        model.put(
            STATUS,
            STATUS_LINK_UP | STATUS_DUPLEX | 1 << STATUS_SPEED_SHIFT,
        );
        model.raise_other(CAUSE_LINK);
        assert_eq!(model.messages[message], 2);
    });
    assert_eq!(control.link().unwrap(), up(100));
}

#[test]
fn a_link_that_changes_while_it_is_read_is_seen_or_told_of() {
    for register in [EICR, ICR, EIMS, STATUS] {
        let rig = Rig::new(600);
        let (_pairs, mut control) = rig.start(1).unwrap();
        rig.with(|model| model.unplug_after = Some(register));
        let seen = control.link().unwrap();
        let told = rig.with(|model| model.messages[1]) > 0;
        assert!(seen == LinkState::Down || told, "after {register:#x}");
        if told {
            control.link().unwrap();
        }
        rig.with(|model| {
            let before = model.messages[1];
            model.unplug();
            assert_eq!(model.messages[1], before + 1, "after {register:#x}");
        });
    }
}
