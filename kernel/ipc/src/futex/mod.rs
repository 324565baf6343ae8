//! Fast user-space locks: sleeping on a word of memory.
//!
//! `core/futex` says who waits for which word, who is woken, moved and lent a rank; this binds it
//! to programs' memory, to threads that park, and to the kernel's errors. A word is known by its
//! address space and address, or, where processes share the memory, by the memory object and the
//! offset in it ([`place_of`]). A word whose page is missing is tried again once that has come,
//! which nothing is locked for (`word`).
//!
//! The one table is the machine's: words are shared by processes that share nothing else.

mod key;
pub mod pi;
mod robust;
mod wait;
mod word;

use mach::sync::Spin;
use task::FutexHost as Host;

use ::futex::pi::Locks;
use ::futex::{Bucket, Table};

pub use ::futex::{Key, MATCH_ANY, Operation};
pub use key::place_of;
pub use robust::init;
pub use wait::{requeue, wait, wake, wake_op};
pub use word::{Place, UserWord};

const BUCKETS: usize = 256;

/// The machine's: words are shared by whoever maps the memory.
static TABLE: Table<Host, BUCKETS> = Table::over(
    [const { Spin::new(Bucket::new()) }; BUCKETS],
    Spin::new(Locks::new()),
);
