//! epoll: many files, and the list of those that may be ready.
//!
//! The problem: a program watches ten thousand files and asks again and again which are ready.
//! What that costs must follow those that changed, no change may be missed, and each report goes
//! where its trigger says: again and again, once a change, or once.
//!
//! The idea: a [`Set`] holds an [`Entry`] for each file that it watches. The entry observes the
//! file: told of a change, it puts itself on the ready list and wakes one waiter. Who waits
//! takes entries off the list and asks each file what is true *now*, so the list may name too
//! many but never too few. A level-triggered entry that is still ready goes back to the end;
//! an edge-triggered one does not; a one-shot one belongs to whoever silences it first.
//!
//! An entry's mark that it is queued is cleared before the file is asked: a change after that
//! queues the entry again, a change before it is part of the answer. Clearing is an exchange, as
//! marking is: whoever comes second sees what the first did.
//!
//! Who takes an entry off the list and puts it back wakes a waiter: one may have found the list
//! empty in between.
//!
//! An entry refers weakly to its open file, so that it ends with the last descriptor of that;
//! what is left of it goes when the descriptor's number is watched anew. A removed entry may lie
//! on the ready list; so that no program fills it with those, they are swept out once they are
//! more than the entries ([`ready`]).
//!
//! A set may watch another. [`nest`] keeps such chains short and free of cycles, which bounds
//! the depth of notifications and of polls. [`Observers`] are the other side: who hears of an
//! object's changes, and who of the exclusive ones.
//!
//! Lock order: an object's observers, then a ready list, then what [`Waiters`] take; an entry's
//! state is innermost. The map of entries is never held together with them, but for the ready
//! list while room is made in it.
//!
//! `tests/model` has `loom` try the orders of changes, waits, removals and re-armings, and shows
//! that it notices when a step is missing; `tests/random.rs` compares long histories with
//! readiness that is computed anew.
//!
//! What once failed: two threads that waited for the same one-shot entry could both get it; who
//! polled a set while another was about to wait let it sleep beside a ready file; a program that
//! added and removed a ready file again and again filled the ready list.
//!
//! Not here: files, threads, their sleep, the layout of reports.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod collect;
mod entry;
mod events;
mod host;
mod nest;
mod observers;
mod ready;
mod set;

pub use entry::Entry;
pub use events::{Event, Events, Trigger, Watch};
pub use host::{Host, Open, Refusal, Waiters};
pub use nest::Nesting;
pub use observers::{Observer, Observers, Sharing};
pub use set::{Key, Set};
