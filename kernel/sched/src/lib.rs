//! Which thread runs where, and when: the CPUs, contexts, timers and interrupts around
//! `dispatch`, which decides.
//!
//! The dispatcher's theory says by what rules. Preemption happens on return to user mode, and in long work of the kernel
//! where that permits it ([`resched_point`]), when a slice is used up or a thread that is clearly behind woke.
//!
//! There is no idle thread. A thread that parks while nothing else is runnable waits
//! *in place* ([`idle`]), so that the common cycle of a server (wait for a packet,
//! serve it) costs no context switch at all.
//!
//! What a thread is besides, this crate does not know: it has an [`Entity`] of each, and a
//! [`Runnable`] where it gives it a CPU. Softirqs and timers are here too, as a CPU looks at them
//! wherever it looks for a thread.
//!
//! The kernel runs with interrupts off, and is preempted at resched points only; between them per-CPU data needs no lock.
//!
//! Lock order: run queue locks are innermost; at most one is held at a time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod alarm;
pub mod budget;
mod cause;
mod current;
mod dispatcher;
mod entity;
mod flags;
pub mod halt_poll;
mod idle;
mod life;
mod load;
mod preempt;
pub mod preempt_off;
mod profile;
mod quiescent;
mod resched;
mod runnable;
pub mod sample;
mod softirq;
mod switch;
mod tick;
pub mod timer;
mod wake;

pub use current::{adopt_boot_thread, current, current_counted, in_mstate, try_current};
pub use dispatch::{PRIORITY_MAX, Policy, ROUND, Rank, SLICE, State};
pub use dispatcher::runnable_count;
pub use entity::{Entity, faults_of, migrations_of};
pub use flags::Flags;
pub use life::Mstate;
pub use load::averages as load_averages;
pub use preempt::{migrate, note_interrupt, preempt_if_due};
pub use quiescent::wait_for_grace_period;
pub use resched::resched_point;
pub use runnable::{Calls, Runnable};
pub use softirq::{
    Look, Softirq, Work, forget_rest, raise, raise_by_rest, raise_numbered, raise_on,
    register_softirq, run_softirqs,
};
pub use switch::{exit, finish_switch, park_until, run, switch_count, switches_of, yield_now};
pub use tick::init;
pub use wake::{interrupt, launch, lend, set_affinity, set_policy, wake, woken_elsewhere};
