//! Fast user-space locks: sleeping on a word of memory.
//!
//! A thread that waits checks the word under the lock of the word's bucket; a waker
//! changes the word first and then takes that lock. So either the waiter sees the new
//! value, or the waker finds the waiter in the bucket. The word is read without leaving
//! the lock: if its page is missing, the lock is dropped, the page is brought in and
//! everything starts again.
//!
//! A word is known by its address space and address, or, where processes share the
//! memory, by the memory object and the offset in it ([`Key`]).
//!
//! Lock order: the bucket of the lower index first; then a waiter's key; then run
//! queues. Locks with priority inheritance are `pi`'s.

mod key;
pub mod pi;
mod robust;
mod table;
mod wait;

pub use key::{Key, key_of};
pub use robust::{exec_thread, exit_thread};
pub use table::Waiter;
pub use wait::{Operation, requeue, wait, wake, wake_with};

/// Every waiter, whatever it waits for (`FUTEX_BITSET_MATCH_ANY`).
pub const MATCH_ANY: u32 = u32::MAX;
