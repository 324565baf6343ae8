//! Processes and what they are to each other: parents, groups, sessions, and the numbers of all.
//!
//! The problem: each fork, each end and each wait changes relations, on all CPUs at once. With one
//! index under one lock all questions have simple answers, and all forks of the machine wait for
//! each other.
//!
//! The idea: what is changed together is kept together, and nothing else.
//! - A [`Member`] is a process. Its parent keeps it, among its *children*, with what the parent may
//!   hear of it (`Host::State`: a stop, the end). So forks, ends and waits lock one parent's
//!   children, and families that have nothing to do with each other meet nowhere.
//! - The [`Table`] finds members by number, and those of a group. It has parts, by the number of
//!   the member: those that are started one after the other are in different parts.
//! - A [`Number`] is counted: the process, and all that have it as their group or session, hold it, so
//!   it is given to nobody else before the last of them is gone. [`Numbers`] gives them out
//!   without a lock.
//!
//! Invariants:
//! - **Kept**: a member with a parent is among that one's children and no other's; only who has the
//!   parent's children (both, where it moves) changes either.
//! - **Closed**: who has given its children away has none ever again: a child that is born to it
//!   afterwards goes to its heir at once.
//! - **Grouped**: a part says of a member's group what the member's `place` says.
//! - **Together**: all members of a group are in one session (`group`).
//!
//! Who looks for a child's record reads whose child it is, locks them, and looks again if it
//! has been moved meanwhile: that can only be because the parent ended.
//!
//! Lock order: a member's children; then an ancestor's, as members only ever move up; then a part of
//! the table; then a member's `place`. Nothing is dropped under them.
//!
//! `tests/relations` compares long histories with plain lists, and has `loom` try the
//! orders of births, ends, waits and inheritance with exactly this code.
//!
//! Not here: what a parent may hear, signals, who is told.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod children;
mod group;
mod heir;
mod host;
mod member;
mod number;
mod sweep;
mod table;

pub use heir::Orphans;
pub use host::{Fate, Host, State};
pub use member::Member;
pub use number::{Number, Numbers};
pub use sweep::{Begun, Generations, Sweep, Sweeps};
pub use table::{Cursor, Index, Part, Table};

/// The number of the first process, which inherits what nobody else does.
pub const INIT: u32 = 1;
