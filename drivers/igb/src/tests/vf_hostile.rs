//! Virtual functions that break the rules, and a physical one that does not answer.

extern crate std;

use std::rc::Rc;
use std::vec::Vec;

use hal::{FramePort, MulticastFilter, NicControl, Registers};

use super::model_pools::VfWindow;
use super::rig::MAC;
use super::vfs::{Pools, to};
use crate::message::{MAY_SEND, NO, RESET, SET_LENGTH, SET_MAC, SET_MULTICAST, SET_VLAN, YES};
use crate::registers_pools::*;
use crate::{Error, vf};

/// Puts a message into the mailbox as a driver of anybody's would, and reads what is there
/// after the physical function looked.
fn say(pools: &Pools, vf: usize, words: &[u32]) -> Vec<u32> {
    let window = pools.window(vf);
    window.write32(VF_MAILBOX, VF_HOLDS);
    for (at, word) in words.iter().enumerate() {
        window.write32(VF_MAILBOX_MEMORY + 4 * at, *word);
    }
    window.write32(VF_MAILBOX, VF_REQUEST);
    pools.control.borrow_mut().attend();
    (0..3)
        .map(|at| window.read32(VF_MAILBOX_MEMORY + 4 * at))
        .collect()
}

fn mac_words(first: u32, mac: [u8; 6]) -> [u32; 3] {
    let [a, b, c, d, e, f] = mac;
    [
        first,
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, 0, 0]),
    ]
}

#[test]
fn a_reset_is_answered_with_the_address_and_both_marks() {
    let pools = Pools::new(1);
    let answer = say(&pools, 0, &[RESET]);
    let window = pools.window(0);
    let state = window.read32(VF_MAILBOX);
    assert_eq!(state & (VF_PF_SENT | VF_PF_TAKEN), VF_PF_SENT | VF_PF_TAKEN);
    assert_eq!(answer[0], RESET | YES);
    let (pair, _control) = pools.open(0);
    assert_eq!(answer, mac_words(RESET | YES, pair.mac()));
}

#[test]
fn who_has_not_begun_gets_nothing() {
    let pools = Pools::new(1);
    let asked = mac_words(SET_MAC, [2, 0, 0, 0, 0, 1]);
    assert_eq!(say(&pools, 0, &asked)[0], SET_MAC | NO);
    assert_eq!(
        say(&pools, 0, &[SET_VLAN | 1 << 16, 5])[0],
        SET_VLAN | 1 << 16 | NO
    );
    assert_eq!(pools.counted().too_early, 2);
    assert_eq!(pools.pools_of(&to([2, 0, 0, 0, 0, 1])), [0; 0]);
    say(&pools, 0, &[RESET]);
    assert_eq!(say(&pools, 0, &asked)[0], SET_MAC | YES | MAY_SEND);
    assert_eq!(pools.pools_of(&to([2, 0, 0, 0, 0, 1])), [0]);
    pools.rig.with(|model| model.reset_vf(0));
    assert_eq!(
        say(&pools, 0, &asked)[0],
        SET_MAC | NO,
        "it was reset since"
    );
}

#[test]
fn addresses_of_others_are_refused() {
    let pools = Pools::new(2);
    let (other, _kept) = pools.open(1);
    say(&pools, 0, &[RESET]);
    let refused = SET_MAC | NO | MAY_SEND;
    let several = [3, 0, 0, 0, 0, 1];
    for mac in [MAC, other.mac(), several, [0; 6], [0xff; 6]] {
        assert_eq!(say(&pools, 0, &mac_words(SET_MAC, mac))[0], refused);
    }
    assert_eq!(pools.counted().bad_address, 5);
    assert_eq!(pools.pools_of(&to(MAC)), [2]);
    assert_eq!(pools.pools_of(&to(other.mac())), [1]);
    let mine = [2, 0, 0, 0, 0, 7];
    say(&pools, 0, &mac_words(SET_MAC, mine));
    let mut physical = pools.control.borrow_mut();
    assert!(physical.add_address(0, mine).is_err(), "it is taken");
}

#[test]
fn what_is_not_known_is_refused_and_what_is_no_request_ignored() {
    let pools = Pools::new(1);
    say(&pools, 0, &[RESET]);
    for first in [
        0,
        6,
        0x63,
        0x0100,
        0x00ff_ffff & !0xc000_0000,
        SET_MAC | 2 << 16,
    ] {
        assert_eq!(say(&pools, 0, &[first])[0], first | NO | MAY_SEND);
    }
    assert_eq!(pools.counted().unknown, 6);
    for first in [YES | RESET, NO | SET_MAC, u32::MAX] {
        assert_eq!(say(&pools, 0, &[first])[0], first, "as it was");
    }
    assert_eq!(pools.counted().no_request, 3);
    let length = |bytes| say(&pools, 0, &[SET_LENGTH, bytes])[0];
    assert_eq!(length(1518), SET_LENGTH | YES | MAY_SEND);
    assert_eq!(length(9018), SET_LENGTH | NO | MAY_SEND);
    assert_eq!(pools.counted().too_long, 1);
}

#[test]
fn filters_run_out_for_who_takes_them_all_and_not_for_frames_without_a_tag() {
    let pools = Pools::new(1);
    say(&pools, 0, &[RESET]);
    let join = |id| say(&pools, 0, &[SET_VLAN | 1 << 16, id])[0] & (YES | NO);
    assert!((1..32).all(|id| join(id) == YES));
    assert_eq!(join(32), NO);
    assert_eq!(join(31), YES, "it is there already");
    assert_eq!(pools.counted().no_filter, 1);
    assert_eq!(pools.pools_of(&to(MAC)), [1]);
    pools.rig.with(|model| model.reset_vf(0));
    say(&pools, 0, &[RESET]);
    assert_eq!(join(32), YES, "a reset gives them back");
}

#[test]
fn a_count_of_groups_that_cannot_be_is_cut_off() {
    let pools = Pools::new(1);
    say(&pools, 0, &[RESET]);
    let mut physical = pools.control.borrow_mut();
    physical.set_multicast(MulticastFilter::Only(&[])).unwrap();
    drop(physical);
    let words: Vec<u32> = core::iter::once(SET_MULTICAST | 0xff << 16)
        .chain([0xffff_ffff; 15])
        .collect();
    let answer = say(&pools, 0, &words);
    assert_eq!(answer[0] & (YES | NO), YES);
    assert_eq!(pools.pools_of(&to([0x33, 0x33, 0, 0, 0xff, 0xff])), [0; 0]);
}

#[test]
fn who_does_not_let_go_of_the_mailbox_loses_it_and_holds_up_nobody() {
    let pools = Pools::new(2);
    let window = pools.window(0);
    window.write32(VF_MAILBOX, VF_HOLDS | VF_REQUEST);
    pools.control.borrow_mut().attend();
    assert_eq!(pools.counted().held, 1);
    let (_other, _kept) = pools.open(1);
    assert_eq!(say(&pools, 0, &[RESET])[0], RESET | YES);
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as u32
    }
}

#[test]
fn no_flood_of_garbage_moves_a_frame_of_others() {
    let seed = 0x5eed_50f0;
    std::println!("seed {seed:#x}");
    let mut random = Random(seed);
    let pools = Pools::new(2);
    let (other, _kept) = pools.open(1);
    pools.rig.with(|model| model.writes.clear());
    for round in 0..3000 {
        let kind = random.next() % 8;
        let first = if round % 3 == 0 {
            random.next()
        } else {
            kind | random.next() & 0xff_0000
        };
        let words: Vec<u32> = core::iter::once(first)
            .chain((0..15).map(|_| random.next()))
            .collect();
        say(&pools, 0, if round % 5 == 0 { &[RESET] } else { &words });
        if random.next().is_multiple_of(16) {
            pools.rig.with(|model| model.reset_vf(0));
        }
        let accesses = pools
            .rig
            .with(|model| core::mem::take(&mut model.writes).len());
        assert!(accesses < 400, "{accesses} for one message");
        let of_other = pools.pools_of(&to(other.mac()));
        assert_eq!(
            (pools.pools_of(&to(MAC)), of_other),
            (Vec::from([2]), Vec::from([1]))
        );
    }
    let counted = pools.counted();
    assert!(
        counted.granted > 100 && counted.refused() > 100,
        "{counted:?}"
    );
    pools.rig.assert_no_complaints();
}

#[test]
fn a_physical_function_that_does_not_answer_is_given_up() {
    let pools = Pools::new(1);
    let open = |window: VfWindow| vf::open(window, &pools.rig.memory, pools.rig.pool).err();
    let silent = VfWindow::new(&pools.rig.window, 0, Rc::new(|| ()));
    assert_eq!(open(silent.clone()), Some(Error::Unanswered));
    let model = pools.rig.window.model.clone();
    let held = Rc::new(move || model.borrow_mut().write_pools(pf_mailbox(0), PF_HOLDS));
    let held = VfWindow::new(&pools.rig.window, 0, held);
    assert_eq!(open(held), Some(Error::Unanswered), "it keeps the mailbox");
    pools.rig.with(|model| {
        model.write_pools(pf_mailbox(0), 0);
        model.put(VF_MAILBOX, VF_PF_IN_RESET);
    });
    assert_eq!(
        open(silent),
        Some(Error::Unanswered),
        "it never ends its reset"
    );
}

#[test]
fn an_answer_that_is_no_address_is_not_believed() {
    let pools = Pools::new(1);
    let answering = |words: [u32; 3]| {
        let model = pools.rig.window.model.clone();
        let answer = move || {
            let mut model = model.borrow_mut();
            for (at, word) in words.iter().enumerate() {
                model.put(pf_mailbox_memory(0) + 4 * at, *word);
            }
            model.write_pools(pf_mailbox(0), PF_SEND | PF_TAKE);
        };
        let window = VfWindow::new(&pools.rig.window, 0, Rc::new(answer));
        vf::open(window, &pools.rig.memory, pools.rig.pool).err()
    };
    assert_eq!(
        answering(mac_words(RESET | NO, [2; 6])),
        Some(Error::Refused)
    );
    assert_eq!(
        answering(mac_words(RESET | YES, [3; 6])),
        Some(Error::Refused)
    );
    assert_eq!(
        answering(mac_words(RESET | YES, [0; 6])),
        Some(Error::Refused)
    );
    assert_eq!(answering([u32::MAX; 3]), Some(Error::Refused));
    assert_eq!(answering(mac_words(RESET | YES, [2; 6])), None);
}
