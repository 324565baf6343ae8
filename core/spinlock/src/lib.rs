//! A lock for short sections that do not block, whose waiters queue.
//!
//! The problem: where CPUs just try again until a flag is theirs, each release makes all of them
//! fetch the flag's line, and who is near the last holder wins; another one may never. A queue
//! has a flaw of its own in a virtual machine: the lock stands idle as long as the host does not
//! run the one CPU whose turn it is, and all behind that one wait with it. With 64 CPUs on a host
//! of two, programs took six times as long with a queue alone.
//!
//! The idea (Linux, too, queues only where the host promises to run all CPUs):
//! - A free lock is taken by one exchange of its `state`, and given back by one store. While nobody
//!   meets, this is all.
//! - Who finds it held tries again for [`Machine::turns_before_queue`] turns: for none where CPUs are
//!   always run, else for so many that only who would starve comes to an end of them.
//! - Then it queues (Mellor-Crummey and Scott): it puts itself at the `tail`, and spins on a word of
//!   its own ([`Waiter`]) until the one before it has the lock.
//! - A turn is a pause of the processor at first. Who has waited for long naps between its looks where the
//!   machine can ([`Nap`]): the holder is likely to be stopped, and the host can run it meanwhile.
//! - Only the first of the queue looks at `state`. Others that come while the lock happens to be
//!   free may still overtake it. If the first has looked [`Machine::TURNS_UNTIL_RESERVED`] times, it *reserves* the lock: from
//!   then on nobody overtakes it.
//!
//! A CPU waits for one lock at a time, so one [`Waiter`] for each CPU is enough for all locks. The
//! kernel is not interrupted while it waits, and what it serves meanwhile takes no lock.
//!
//! Invariants:
//! - **Held**: `state` becomes held by an exchange, and only who did that writes it until it is not.
//! - **First**: `after`, which says what a release makes of `state`, is written only by the first of
//!   the queue, which puts it back before it releases the lock itself. A holder that does not see
//!   the reservation yet lets one more CPU overtake; one that sees it has a first to hand over to.
//! - **Linked**: a waiter is written by its own CPU before that is at the `tail`, then by its
//!   two neighbours once each, and left alone once its CPU has gone on.
//!
//! Where nearly all only look, a [`RawShared`] lets them look at the same time (`shared`).
//!
//! `tests/model.rs` and `tests/shared.rs` have `loom` try the orders of exactly this code.
//!
//! Not here: the data that a lock protects, what is counted of waits, what a CPU does in a pause.
#![no_std]
#![forbid(unsafe_code)]

mod lock;
mod nap;
mod shared;
mod small;
mod waiter;

pub use lock::RawLock;
pub use nap::Nap;
pub use shared::{One, PerCpu, RawShared, Slots};
pub use small::{Counter, Family, Native, Small};
pub use waiter::{Machine, Waiter};
