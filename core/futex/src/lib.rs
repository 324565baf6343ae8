//! Fast user-space locks: who sleeps on which word of memory, and who is woken.
//!
//! The problem: a program changes a word by itself and asks the kernel only to sleep or to wake.
//! Between its look at the word and its sleep the word may change, and no wake-up may be lost.
//!
//! The idea: a thread that waits checks the word under the lock of the word's bucket
//! ([`Table::enqueue`]); a waker changes the word first and takes that lock afterwards. So
//! either the waiter sees the new value, or the waker finds the waiter in the bucket. The word
//! is read without leaving the lock: if its page is missing, the call fails with
//! [`Stop::Fault`], nothing has changed, and the caller brings the page in and begins again.
//!
//! A word is known by its address space and address, or, where processes share the memory, by
//! the memory object and the offset in it ([`Key`]). Waiters go by rank, and by arrival within
//! one. A waiter whose time is up takes itself out; if it is not there, somebody has woken it,
//! or moved it: its key tells where to ([`Table::sleep`]). So each wake-up that was counted is
//! somebody's.
//!
//! Locks with priority inheritance are [`pi`]'s. [`robust`] says what the end of a thread does to
//! the locks in a program's list.
//!
//! Lock order: the bucket of the lower index, that of the higher, the table of `pi`, then a
//! thread's key or share, then what [`Thread::unpark`] and [`Thread::lend`] take.
//!
//! Bounds: one lock is held for [`BATCH_WAITERS`] waiters at most.
//!
//! `tests/model` has `loom` try the orders of waits, wake-ups, moves and time-outs with exactly
//! this code, and shows that it notices when a step is missing. `tests/random.rs` compares long
//! histories with a plain list; `tests/inheritance.rs` computes anew who is to be lent what.
//!
//! Not here: the memory of programs, how threads park, clocks, signals, errors' numbers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bucket;
mod host;
mod key;
mod operation;
mod pair;
pub mod pi;
pub mod robust;
mod share;
mod stop;
mod table;
mod waiter;

pub use bucket::Bucket;
pub use host::{Host, LockOf, Rank, Thread, Word};
pub use key::Key;
pub use operation::Operation;
pub use stop::{Refusal, Stop};
pub use table::{Table, replace};
pub use waiter::Waiter;

/// Every waiter, whatever it waits for (`FUTEX_BITSET_MATCH_ANY`).
pub const MATCH_ANY: u32 = u32::MAX;
/// Waiters that are woken or moved under one hold of a lock.
pub const BATCH_WAITERS: usize = 64;
