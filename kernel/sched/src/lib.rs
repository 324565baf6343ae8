//! Which thread runs where, and when.
//!
//! Each CPU has a run queue ordered by virtual run time (time used, scaled by the weight
//! of the thread's nice value): the thread that has had least runs next. A thread
//! that wakes goes to the CPU where its data is warm, or to an idle one; a CPU without
//! work steals. Preemption happens on return to user mode only, when a slice is used up
//! or a thread with clearly less run time woke. Threads with a real-time policy stand above
//! all that ([`class`]), within a bound ([`budget`]).
//!
//! There is no idle thread. A thread that parks while nothing else is runnable waits
//! *in place* ([`idle`]), so that the common cycle of a server (wait for a packet,
//! serve it) costs no context switch at all.
//!
//! States of a thread (`entity::State`): see there; the protocol between [`park_until`]
//! and [`wake`] loses no wake-up and never runs a thread on two CPUs.
//!
//! What a thread is besides, this crate does not know: it has an [`Entity`] of each, and a
//! [`Runnable`] where it gives it a CPU. Softirqs and timers are here too, as a CPU looks at them
//! wherever it looks for a thread.
//!
//! The kernel runs with interrupts off and is never preempted; per-CPU data needs no lock.
//!
//! Lock order: run queue locks are innermost; at most one is held at a time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
pub mod class;
pub mod entity;
mod flags;
pub mod halt_poll;
mod idle;
mod life;
mod load;
mod placement;
mod point;
mod profile;
mod run_queue;
mod runnable;
pub mod sample;
mod since_wait;
mod softirq;
pub mod stretch;
mod switch;
pub mod timer;
mod visit;

pub use class::{Policy, Rank};
pub use entity::{Entity, faults_of, migrations_of};
pub use flags::Flags;
pub use life::Mstate;
pub use load::averages as load_averages;
pub use point::resched_point;
pub use runnable::{Calls, Runnable, adopt_boot_thread, current, current_counted, try_current};
pub use softirq::{
    Softirq, Work, forget_rest, raise, raise_by_rest, raise_on, register_softirq, run_softirqs,
};
pub use switch::{exit, finish_switch, park_until, run, switch_count, switches_of, yield_now};
pub use timer::SLICE;
use visit::note_visit;
pub use visit::visit_all_cpus;

use alloc::sync::Arc;

/// Makes `thread` runnable if it is parked, or lets its next park return at once.
pub fn wake(thread: &Arc<Entity>) {
    if mach::profile::records_waits() {
        profile::record_wake(thread);
    }
    if thread.on_wake() {
        placement::enqueue(thread.clone());
    }
}

/// Makes `thread` look at its flags soon, whether it waits or runs a program.
pub fn interrupt(thread: &Arc<Entity>) {
    wake(thread);
    let cpu = thread.last_cpu();
    if thread.is_on_cpu() && cpu != mach::cpu::id() {
        mach::cpu::kick(cpu);
    }
}

/// Called after an interrupt that came in user mode: it may have been a kick.
/// `behind_call`: the program stands right behind a system call.
pub fn note_interrupt(behind_call: bool) {
    sample::note_interrupt(behind_call);
    note_visit();
    placement::note_arrivals();
}

/// Does something special for the current thread: what it takes and waits for meanwhile is
/// told apart.
pub fn in_mstate<T>(mstate: Mstate, act: impl FnOnce() -> T) -> T {
    let me = current();
    let before = me.life.mstate();
    me.life.set_mstate(mstate);
    let done = act();
    me.life.set_mstate(before);
    done
}

/// Puts a new thread on a run queue for the first time.
pub fn launch(entity: Arc<Entity>, whole: Arc<dyn Runnable>) {
    entity.keep_whole(whole);
    placement::enqueue(entity);
}

/// Called on the way back to user mode when [`Flags::RESCHEDULE`] was set.
pub fn preempt_if_due() {
    let me = current();
    me.clear_flags(Flags::RESCHEDULE);
    migrate();
    if me.class.rank().is_realtime() {
        let used = me.life.slice_used(mach::time::now());
        match me.class.is_round_over(used) {
            true => me.class.end_round(),
            false => me.class.keep_place(),
        }
    }
    yield_now();
    // It may have found nobody to make way for.
    me.class.take_place();
}

/// Gives a thread another policy, and says whether its children start without it.
///
/// One whose priority sinks goes before its new equals, any other one behind them (sched(7)).
pub fn set_policy(thread: &Entity, policy: Policy, resets_on_fork: bool) {
    let class = &thread.class;
    let before = class.policy();
    class.set_resets_on_fork(resets_on_fork);
    if policy == before {
        return;
    }
    class.set_policy(policy);
    if policy.is_realtime() && policy.priority() < before.priority() {
        class.keep_place();
    }
    placement::note_rank(thread);
}

/// Lends a thread a rank in place of what it was lent before.
pub fn lend(thread: &Entity, rank: Rank) {
    if thread.class.lend(rank) {
        placement::note_rank(thread);
    }
}

/// Moves the current thread to a CPU that its affinity allows, if it is on another: it
/// makes way for the thread that always has a reason to run here.
pub fn migrate() {
    if !current().allows(mach::cpu::id()) {
        wake(runnable::boot_thread());
        switch::make_way();
    }
}

/// Threads that are runnable on all CPUs, the running ones included.
pub fn runnable_count() -> usize {
    let waiting: usize = placement::queues().map(|queue| queue.lock().len()).sum();
    waiting + placement::busy_count()
}
