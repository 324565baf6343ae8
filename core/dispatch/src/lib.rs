//! The dispatcher: which thread runs on which CPU, and who makes way for whom.
//!
//! The problem: threads become runnable on any CPU at any time. Each is to get its share, one
//! that must hurry is to get a CPU at once, none may be lost between two CPUs, no CPU may idle
//! beside a thread that waits, and a switch must cost next to nothing.
//!
//! The idea: each CPU has a queue of its own ([`RunQueue`]), ordered by rank and, among threads
//! that share fairly, by virtual run time: time used, scaled by the weight of the thread's nice
//! value. Whoever had least runs next. What the CPUs know of each other is little and is
//! published beside the queues: how many wait there, what runs, who idles. So a look at another
//! CPU takes its lock only where there is something to take.
//!
//! - **Placement** ([`Dispatcher::enqueue`]): a thread that wakes goes to the CPU where it ran
//!   last if that idles or nobody does, else to an idle one, a near one first. An idle CPU
//!   counts as such until a thread is sent to it: several that wake at the same time go to several.
//! - **Picking** ([`Dispatcher::next`]): the best of the own queue, else one stolen from a
//!   neighbour, the near ones first.
//! - **Balancing** ([`Dispatcher::balance`]): while all are busy nobody steals, so queues are
//!   compared once a slice; who waits in a queue longer by two is better off here.
//! - **Preemption** ([`Dispatcher::is_turn_over`]): at the end of a slice, or when one woke that
//!   is clearly behind. Between [`Rank`]s at once.
//! - **Real-time threads** go before all others, within a bound ([`Budget`]).
//!
//! [`RunState`] is the protocol of parking and waking: no wake-up is lost, and no thread runs on
//! two CPUs.
//!
//! Invariants:
//! - A thread stands on at most one queue, or waits to come to it in a [`WakeList`], exactly while it
//!   is [`State::Ready`].
//! - A thread's place and virtual run time change only with its queue locked while it stands on
//!   one; otherwise only whoever may move it changes them.
//! - A thread waits by the rank and the affinity that it has. Who changes these looks for its place
//!   afterwards, and moves it there; whoever puts it on a queue publishes the place first, and looks at
//!   rank and affinity afterwards. Both exchange the word of the place, so whoever comes second
//!   sees what the first did.
//! - A CPU announces that it idles *before* it looks at its queue for the last time; whoever puts
//!   a thread there tells the CPU *afterwards*. So one of the two sees the other.
//!
//! Lock order: at most one queue is held at a time. Slots of a [`WakeList`] are innermost.
//!
//! `tests/model` has `loom` try the orders of parks, wake-ups, time-outs and halts with exactly
//! this code. `tests/random.rs` compares long histories with plain lists.
//!
//! Not here: registers and stacks, clocks, interrupts, what a thread is besides.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod balance;
mod budget;
mod class;
mod cpu;
mod dispatcher;
mod entity;
mod machine;
mod pick;
mod placement;
mod policy;
mod preempt;
mod ready;
mod run_queue;
mod since_wait;
mod state;
mod waiting;
mod wakelist;
mod weight;

pub use budget::{Budget, Limits};
pub use class::{Class, ROUND};
pub use cpu::Cpu;
pub use dispatcher::Dispatcher;
pub use entity::{Place, SchedEntity};
pub use machine::{Machine, Thread};
pub use placement::Arrival;
pub use policy::{PRIORITY_MAX, Policy, Rank};
pub use preempt::SLICE;
pub use run_queue::RunQueue;
pub use since_wait::SinceWait;
pub use state::{OffCpu, RunState, State, Wake};
pub use wakelist::{SLOTS, Slot, WakeList};
