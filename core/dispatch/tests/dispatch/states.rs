//! Where a thread stands after each step of parking and waking.

use std::sync::atomic::AtomicUsize;

use dispatch::{OffCpu, RunState, State, Wake};

type OneState = RunState<AtomicUsize>;

/// A thread that a CPU runs.
fn running() -> OneState {
    let state = OneState::default();
    assert_eq!(state.get(), State::Ready, "it waits for its first CPU");
    state.run();
    state
}

fn parking() -> OneState {
    let state = running();
    assert!(state.begin_park());
    state
}

fn parked() -> OneState {
    let state = parking();
    assert_eq!(state.leave_cpu(), OffCpu::Waits);
    state
}

fn dead() -> OneState {
    let state = running();
    state.end();
    state
}

#[test]
fn a_wake_up_before_the_park_ends_one_park() {
    let state = running();
    assert_eq!(state.wake(), Wake::Noted);
    assert_eq!(state.wake(), Wake::Noted, "one is to come already");
    assert!(!state.begin_park());
    assert_eq!(state.get(), State::Running);
    assert!(state.begin_park());
}

#[test]
fn a_wake_up_during_the_park_puts_the_thread_on_a_queue_as_it_leaves() {
    let state = parking();
    assert!(!state.is_awakened());
    assert_eq!(state.wake(), Wake::Interrupt);
    assert!(state.is_awakened());
    assert_eq!(state.wake(), Wake::Noted);
    assert_eq!(state.leave_cpu(), OffCpu::Woken);
    assert_eq!(state.get(), State::Ready);
}

#[test]
fn a_wake_up_after_the_park_puts_the_thread_on_a_queue_once() {
    let state = parked();
    assert_eq!(state.wake(), Wake::Enqueue);
    assert_eq!(state.get(), State::Ready);
    assert_eq!(state.wake(), Wake::Noted);
}

#[test]
fn a_thread_that_makes_way_goes_on_a_queue() {
    let state = running();
    assert_eq!(state.leave_cpu(), OffCpu::MadeWay);
    assert_eq!(state.get(), State::Ready);
    state.run();
    assert_eq!(state.wake(), Wake::Noted);
    assert_eq!(
        state.leave_cpu(),
        OffCpu::MadeWay,
        "a wake-up changes nothing"
    );
}

#[test]
fn a_thread_that_is_over_runs_no_more() {
    let state = dead();
    assert_eq!(state.wake(), Wake::Noted);
    assert_eq!(state.leave_cpu(), OffCpu::Over);
    assert_eq!(state.get(), State::Dead);
}

#[test]
fn a_thread_works_while_it_does_not_wait_in_place() {
    let notified = running();
    assert_eq!(notified.wake(), Wake::Noted);
    let awakened = parking();
    assert_eq!(awakened.wake(), Wake::Interrupt);
    assert!(running().works() && notified.works());
    for state in [OneState::default(), parking(), awakened, parked(), dead()] {
        assert!(!state.works(), "{:?}", state.get());
    }
}

#[test]
fn a_thread_is_on_a_cpu_until_it_has_left_it() {
    let notified = running();
    assert_eq!(notified.wake(), Wake::Noted);
    let awakened = parking();
    assert_eq!(awakened.wake(), Wake::Interrupt);
    for state in [running(), notified, parking(), awakened] {
        assert!(state.is_on_cpu(), "{:?}", state.get());
    }
    for state in [OneState::default(), parked(), dead()] {
        assert!(!state.is_on_cpu(), "{:?}", state.get());
    }
}
