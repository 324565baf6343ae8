//! Byte-range locks of fcntl(2): who holds what, and who is in the way.
//!
//! A file's locks are a list of disjoint ranges per owner, sorted by their start. A new
//! lock of an owner replaces what that owner held in the range, so a range may be split,
//! shrunk, upgraded or joined with its neighbours. Two owners conflict where their ranges
//! overlap and one of the locks is exclusive.
//!
//! Invariants: ranges are not empty; ranges of one owner do not overlap; touching ranges
//! of one owner and one kind are joined; at most [`LOCKS_MAX`] ranges are held.
//!
//! Also here: [`WaitGraph`], which finds the cycles that would block their owners for
//! ever. Not here: waiting itself, descriptors, errno.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod graph;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::ops::Range;

pub use graph::WaitGraph;

/// Ranges held on one file by all owners.
pub const LOCKS_MAX: usize = 4096;

/// Whether a lock tolerates others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Any number of shared locks may overlap.
    Shared,
    /// Overlaps nothing of another owner.
    Exclusive,
}

/// One lock that is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held<O> {
    /// Who holds it.
    pub owner: O,
    /// Which bytes; `u64::MAX` as end means all that may ever come.
    pub range: Range<u64>,
    /// How.
    pub mode: Mode,
}

/// No room for another range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// The locks of one file.
#[derive(Debug)]
pub struct RangeLocks<O> {
    held: Vec<Held<O>>,
}

impl<O> Default for RangeLocks<O> {
    fn default() -> Self {
        Self { held: Vec::new() }
    }
}

impl<O: Copy + PartialEq> RangeLocks<O> {
    /// Whether nobody holds anything.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The first lock of somebody else that stands in the way of this one.
    pub fn conflict(&self, owner: O, range: &Range<u64>, mode: Mode) -> Option<&Held<O>> {
        self.held.iter().find(|held| {
            held.owner != owner
                && overlaps(&held.range, range)
                && (mode == Mode::Exclusive || held.mode == Mode::Exclusive)
        })
    }

    /// Gives `owner` the range; the caller has checked that nothing is in the way.
    pub fn insert(&mut self, owner: O, range: Range<u64>, mode: Mode) -> Result<(), Full> {
        // A lock in the middle of another splits it: two more at most.
        if self.held.len() + 2 > LOCKS_MAX {
            return Err(Full);
        }
        self.remove(owner, &range);
        let mut joined = range;
        self.held.retain(|held| {
            let touches = held.range.end == joined.start || held.range.start == joined.end;
            let joins = held.owner == owner && held.mode == mode && touches;
            if joins {
                joined.start = joined.start.min(held.range.start);
                joined.end = joined.end.max(held.range.end);
            }
            !joins
        });
        let at = self
            .held
            .partition_point(|held| held.range.start < joined.start);
        self.held.insert(
            at,
            Held {
                owner,
                range: joined,
                mode,
            },
        );
        Ok(())
    }

    /// Takes the range from `owner`; true if it held any of it.
    pub fn remove(&mut self, owner: O, range: &Range<u64>) -> bool {
        let mut rests: Vec<Held<O>> = Vec::new();
        let before = self.held.len();
        self.held.retain(|held| {
            let cut = held.owner == owner && overlaps(&held.range, range);
            if cut {
                let left = held.range.start..range.start.min(held.range.end);
                let right = range.end.max(held.range.start)..held.range.end;
                let parts = [left, right].into_iter().filter(|part| !part.is_empty());
                rests.extend(parts.map(|range| Held {
                    owner,
                    range,
                    mode: held.mode,
                }));
            }
            !cut
        });
        let changed = self.held.len() != before;
        self.held.extend(rests);
        self.held.sort_by_key(|held| held.range.start);
        changed
    }

    /// Takes everything from the owners that `is_gone` names; true if any held something.
    pub fn remove_owners(&mut self, is_gone: impl Fn(O) -> bool) -> bool {
        let before = self.held.len();
        self.held.retain(|held| !is_gone(held.owner));
        self.held.len() != before
    }

    /// All locks, by their start.
    pub fn iter(&self) -> impl Iterator<Item = &Held<O>> {
        self.held.iter()
    }
}

fn overlaps(one: &Range<u64>, two: &Range<u64>) -> bool {
    one.start < two.end && two.start < one.end
}
