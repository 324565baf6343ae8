//! Hosts that ask, and machines that need.

use super::{Balloon, STEP_FRAMES, Step, floor_of};

const STEP: u64 = STEP_FRAMES as u64;

/// Steps until it rests, as if each succeeded; frames that are free then.
fn settle(balloon: &mut Balloon, mut free: u64, floor: u64) -> u64 {
    loop {
        match balloon.step(free, floor) {
            Step::Grow(frames) => {
                assert!((1..=STEP_FRAMES).contains(&frames));
                balloon.grew(frames);
                free -= frames as u64;
            }
            Step::Shrink(frames) => {
                assert!((1..=STEP_FRAMES).contains(&frames));
                balloon.shrank(frames);
                free += frames as u64;
            }
            Step::ShrinkCaches => {}
            Step::Rest => return free,
        }
    }
}

#[test]
fn the_host_gets_what_it_asks_for_and_gives_it_back() {
    let mut balloon = Balloon::default();
    assert_eq!(balloon.step(10_000, 100), Step::Rest);
    balloon.ask(3 * STEP + 7);
    assert_eq!(settle(&mut balloon, 10_000, 100), 10_000 - 3 * STEP - 7);
    assert_eq!(balloon.held(), 3 * STEP + 7);
    balloon.ask(1);
    assert_eq!(settle(&mut balloon, 0, 100), 3 * STEP + 6);
    assert_eq!(balloon.held(), 1);
}

#[test]
fn the_floor_stays_free_whatever_the_host_asks_for() {
    let mut balloon = Balloon::default();
    balloon.ask(u64::MAX);
    assert_eq!(settle(&mut balloon, 5000, 1234), 1234);
    // It is no reason to give anything back, though.
    assert_eq!(balloon.step(0, 1234), Step::Rest);
}

#[test]
fn caches_shrink_once_whenever_the_host_asks_for_more_than_is_free() {
    let mut balloon = Balloon::default();
    for _ in 0..2 {
        balloon.ask(STEP);
        assert_eq!(balloon.step(99, 100), Step::ShrinkCaches);
        assert_eq!(balloon.step(99, 100), Step::Rest);
        // What becomes free later stays with the machine.
        assert_eq!(balloon.step(10_000, 100), Step::Rest);
    }
    balloon.ask(STEP);
    assert_eq!(balloon.step(99, 100), Step::ShrinkCaches);
    assert_eq!(balloon.step(110, 100), Step::Grow(10));
}

#[test]
fn what_the_machine_took_back_stays_until_the_host_asks_again() {
    let mut balloon = Balloon::default();
    balloon.ask(4 * STEP);
    settle(&mut balloon, 10_000, 100);
    balloon.take_back(STEP);
    // Twice before the first was done is twice as much.
    balloon.take_back(STEP);
    settle(&mut balloon, 10_000, 100);
    assert_eq!(balloon.held(), 2 * STEP);
    balloon.ask(4 * STEP);
    settle(&mut balloon, 10_000, 100);
    assert_eq!(balloon.held(), 4 * STEP);
}

#[test]
fn an_empty_balloon_has_nothing_to_take_back() {
    let mut balloon = Balloon::default();
    balloon.take_back(STEP);
    assert_eq!(balloon.step(0, 100), Step::Rest);
    balloon.ask(STEP);
    settle(&mut balloon, 10_000, 100);
    balloon.take_back(u64::MAX);
    settle(&mut balloon, 0, 100);
    assert_eq!(balloon.held(), 0);
}

#[test]
fn where_no_frame_is_to_be_had_it_does_not_ask_in_a_circle() {
    let mut balloon = Balloon::default();
    balloon.ask(STEP);
    balloon.stop();
    assert_eq!(balloon.step(10_000, 100), Step::Rest);
    balloon.ask(STEP);
    assert_eq!(balloon.step(10_000, 100), Step::Grow(STEP_FRAMES));
}

#[test]
fn small_machines_keep_more_than_their_reserve_and_large_ones_a_share() {
    assert_eq!(floor_of(16 << 10, 512), 1536);
    assert_eq!(floor_of(1 << 20, 4096), 1 << 16);
}
