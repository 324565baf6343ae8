//! The areas of an address space: what a program mapped where.
//!
//! The problem: `mmap`, `mprotect` and their kin change any range of pages, across
//! what earlier calls made. Each page fault then has to know what is meant to be there.
//!
//! The idea: an [`AreaMap`] keeps disjoint [`Area`]s in the order of their addresses.
//! Every change is "split at both ends, change what lies between, merge what is alike".
//! They lie in a balanced tree that knows its widest gaps, so that each step costs
//! O(log n); the area found last is remembered, for faults come in runs.
//! An area refers to its object (a file's pages) by an opaque handle, so all of this is
//! arithmetic that runs and is tested anywhere.
//!
//! Invariants: areas do not overlap, are not empty, and start and end at pages; two
//! neighbours that could be one area are one.
//!
//! Not here: pages, page tables, faults, who may map what.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod area;
mod arena;
mod gap;
mod map;
mod tree;

#[cfg(test)]
mod tests;

pub use area::{Access, Area, Backing, Traits};
pub use gap::{STACK_GAP_BYTES, Window};
pub use map::{AREAS_MAX, AreaMap, Removed, TooManyAreas};
