//! Performance events (perf_event_open(2)): what threads and CPUs do is counted, and sampled.
//!
//! The problem: a program asks for "the page faults of these threads and of all threads that they
//! will make", any time, for many threads at once, and nobody may pay who is not asked about.
//!
//! The idea: what can be counted is counted anyway, by each thread and by each CPU.
//! An [`Event`] is what a descriptor stands for; it has a `Gauge` at each thread it watches,
//! or one at a CPU. A gauge that is on knows what its counter read when it was switched on, and
//! tells the difference; so a thread that is watched runs as fast as one that is not. Where an
//! event is inherited, a new thread gets gauges of its maker's events (`threads`), and one that
//! ends leaves what it has counted to the event.
//!
//! Samples: while an event that wants them lives, NMIs find out what each CPU does
//! (`mach::profile::tap`), and the interrupted thread writes that into the rings of its own
//! events and its CPU's (`sample`, `record`, `ring`). News of threads, names and mapped files goes
//! the same way (`threads`, `record::sideband`).
//!
//! Threads, and who samples them, know events; events know the ring they write to and what a
//! record of theirs looks like; neither of those knows an event.
//!
//! The host's profiler stands beside that: it reads the samples of the machine itself ([`profile`]).
//!
//! Bounds: events are descriptors; gauges are charged to the user who has opened the event; a
//! thread has at most [`GAUGES_MAX`] of them. A ring's pages are charged as well.
//!
//! Lock order: a thread's gauges or an event's, then one gauge; a ring is locked alone. Nothing is
//! dropped with one of them held that could be an event's last reference.
//!
//! Not here: the layout of `struct perf_event_attr` (`kernel/linux`); events of the processor
//! (cycles, instructions) and trace points, which there are none of. Samples are of the clock
//! only, at [`MAX_SAMPLE_RATE`] at most, and not of idle CPUs; user registers and stacks,
//! rings that overwrite themselves, and the order to stop after some samples are not offered.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod event;
mod limits;
mod observer;
pub mod profile;
mod record;
mod ring;
mod sample;
mod threads;

pub use attributes::{AttrBits, Attributes, Fields, Format, Kind, Wakeup};
pub use event::{Event, Target, event_of, open};
pub use limits::{GAUGES_MAX, PARANOID, USER_GAUGES_MAX, USER_RING_KIBIBYTES};
pub use mach::profile::HERTZ as MAX_SAMPLE_RATE;
pub use observer::init;
pub use sample::deliver;
pub use threads::{note_exec, note_mappings, note_name};
