//! `loom` runs the protocol's own code with two CPUs in all orders that matter.
//!
//! Each CPU has a TLB that remembers what it walked for as long as it is allowed to. A frame is a
//! cell that loom watches: the initiator overwrites it once the flush returns, and any access
//! through a translation that is still remembered is reported as a race.
//!
//! The last tests take a fence or a comparison away and expect loom to notice.

#![forbid(unsafe_code)]

mod machine;
mod processor;
mod words;

use base::Atomics;
use machine::{Part, Quirk, explore, run};
use processor::Processor;
use words::{Fenced, Unfenced};

fn in_space_0<A: Atomics>(cpu: &mut Processor<A>) {
    cpu.activate(0);
    cpu.touch(0);
}

fn rest_and_wake<A: Atomics>(cpu: &mut Processor<A>) {
    cpu.touch(0);
    cpu.rest();
    cpu.wake();
    // As whoever goes on there does: the space may have been left.
    cpu.activate(0);
    cpu.touch(0);
}

fn leave_and_return<A: Atomics>(cpu: &mut Processor<A>) {
    cpu.touch(0);
    cpu.activate(1);
    cpu.activate(0);
    cpu.touch(0);
}

/// CPU 0 unmaps a page of the space in which CPU 1 runs, which does `part`.
fn explore_unmap<A: Atomics<Word: Send + Sync> + 'static>(quirk: Quirk, part: Part<A>) {
    explore(move || run::<A>(quirk, |cpu| cpu.unmap(0), in_space_0, part));
}

#[test]
fn a_cpu_in_the_space_has_forgotten_when_the_flush_returns() {
    explore_unmap::<Fenced>(Quirk::None, |cpu| {
        cpu.touch(0);
        cpu.take_interrupt();
        cpu.touch(0);
    });
}

#[test]
fn two_initiators_serve_each_other() {
    fn unmap_other<A: Atomics>(cpu: &mut Processor<A>) {
        cpu.activate(0);
        cpu.touch(1);
        cpu.unmap(0);
    }
    explore(|| run::<Fenced>(Quirk::None, unmap_other, in_space_0, |cpu| cpu.unmap(1)));
}

#[test]
fn a_cpu_that_comes_to_the_space_does_not_remember_what_it_lost() {
    fn come<A: Atomics>(cpu: &mut Processor<A>) {
        cpu.activate(0);
        cpu.touch(0);
    }
    explore(|| run::<Fenced>(Quirk::None, |cpu| cpu.unmap(0), |_| (), come));
}

#[test]
fn a_resting_cpu_catches_up_when_it_wakes() {
    explore_unmap::<Fenced>(Quirk::None, rest_and_wake);
}

#[test]
fn a_cpu_that_returns_to_the_space_catches_up() {
    explore_unmap::<Fenced>(Quirk::None, leave_and_return);
}

#[test]
fn no_cpu_has_the_root_of_tables_that_are_given_back() {
    fn go_on<A: Atomics>(cpu: &mut Processor<A>) {
        cpu.activate(1);
        cpu.stay_in_kernel();
    }
    explore(|| run::<Fenced>(Quirk::None, |cpu| cpu.drop_tables(), in_space_0, go_on));
}

#[test]
fn a_resting_cpu_leaves_tables_that_are_given_back() {
    fn sleep<A: Atomics>(cpu: &mut Processor<A>) {
        cpu.rest();
        cpu.stay_in_kernel();
        cpu.wake();
        cpu.stay_in_kernel();
    }
    explore(|| run::<Fenced>(Quirk::None, |cpu| cpu.drop_tables(), in_space_0, sleep));
}

fn walk_in_space_0<A: Atomics>(cpu: &mut Processor<A>) {
    cpu.activate(0);
    cpu.speculate();
}

fn walk_at_rest<A: Atomics>(cpu: &mut Processor<A>) {
    cpu.rest();
    cpu.speculate();
    cpu.take_interrupt();
    cpu.speculate();
    cpu.wake();
    cpu.activate(0);
    cpu.speculate();
}

/// CPU 0 gives back a table of the space in which CPU 1 runs, which does `part`.
fn explore_sweep<A: Atomics<Word: Send + Sync> + 'static>(part: Part<A>) {
    explore(move || run::<A>(Quirk::None, |cpu| cpu.sweep(), walk_in_space_0, part));
}

#[test]
fn a_resting_cpu_walks_through_no_table_that_is_given_back() {
    explore_sweep::<Fenced>(walk_at_rest);
}

#[test]
fn a_cpu_that_leaves_walks_through_no_table_that_is_given_back() {
    explore_sweep::<Fenced>(|cpu| {
        cpu.activate(1);
        cpu.speculate();
        cpu.activate(0);
        cpu.speculate();
    });
}

#[test]
#[should_panic(expected = "a frame was given back too early")]
fn loom_notices_that_a_resting_cpu_was_not_told_of_a_table() {
    let sweep: Part<Fenced> = |cpu| cpu.sweep_as_page();
    explore(move || run(Quirk::None, sweep, walk_in_space_0, walk_at_rest));
}

#[test]
#[should_panic(expected = "a frame was given back too early")]
fn loom_notices_that_the_fences_are_missing_when_a_cpu_wakes() {
    explore_unmap::<Unfenced>(Quirk::None, rest_and_wake);
}

#[test]
#[should_panic(expected = "a frame was given back too early")]
fn loom_notices_that_the_fences_are_missing_when_a_cpu_returns() {
    explore_unmap::<Unfenced>(Quirk::None, leave_and_return);
}

#[test]
#[should_panic(expected = "a frame was given back too early")]
fn loom_notices_a_cpu_that_wakes_without_catching_up() {
    explore_unmap::<Fenced>(Quirk::SleepsOn, rest_and_wake);
}

#[test]
#[should_panic(expected = "a frame was given back too early")]
fn loom_notices_a_cpu_that_returns_without_catching_up() {
    explore_unmap::<Fenced>(Quirk::KeepsAll, leave_and_return);
}
