//! Changes of long ranges, piece by piece.
//!
//! The problem: a program may unmap, protect or fork gigabytes and thousands of areas in one
//! call, and nobody else gets the CPU, nor the space's lock, before a step is done.
//!
//! The idea: a change goes through its range in pieces that the page table and the areas
//! bound ([`AddressSpace::in_pieces`]), and lets the lock and the CPU go in between. Until the last
//! piece is done the range is *under change*: whoever wants to change anything, and a fault
//! in the range, waits for the end. So to other threads a change is as whole as if the lock had
//! been held. A change of one piece, which most are, costs nothing of that.
//!
//! Invariant: `changing` is set and cleared under the lock, by the thread that makes the change.

use core::ops::Range;

use base::VirtAddr;
use mach::mem::{PIECE_BYTES, PageTable, USER_END};
use sched::resched_point;
use sync::{Result, Wait};

use super::AddressSpace;
use super::address_space::{Locked, State};

/// Areas that are changed at a time.
const PIECE_AREAS: usize = 64;

impl AddressSpace {
    /// The state, once no change is under way. Blocks.
    #[inline]
    pub(super) fn lock_settled(&self) -> Locked<'_> {
        loop {
            let state = self.lock();
            if state.changing.is_none() {
                return state;
            }
            drop(state);
            self.wait_until_settled();
        }
    }

    /// Waits for the end of the change that is under way.
    #[cold]
    pub(super) fn wait_until_settled(&self) {
        let is_settled = || self.lock().changing.is_none().then_some(());
        // A change ends by itself, and the wait has no deadline.
        let _ = self.settled.wait(Wait::UNINTERRUPTIBLE, is_settled);
    }

    /// Calls `step` for each piece of `range` in ascending order until one fails, with `state`
    /// locked, as it is again at the end. What a step returns is dropped without the lock, but
    /// for the last, which the caller gets. It must not block then: the range is under change.
    pub(super) fn in_pieces<'a, T>(
        &'a self,
        state: Locked<'a>,
        range: Range<VirtAddr>,
        step: &mut dyn FnMut(&mut State, Range<VirtAddr>) -> Result<T>,
    ) -> Result<(Locked<'a>, T)> {
        self.in_pieces_within(state, range.clone(), range, step)
    }

    /// As [`AddressSpace::in_pieces`], where all of `under_change` changes.
    pub(super) fn in_pieces_within<'a, T>(
        &'a self,
        state: Locked<'a>,
        range: Range<VirtAddr>,
        under_change: Range<VirtAddr>,
        step: &mut dyn FnMut(&mut State, Range<VirtAddr>) -> Result<T>,
    ) -> Result<(Locked<'a>, T)> {
        self.in_pieces_by(piece_end, state, range, under_change, step)
    }

    /// As [`AddressSpace::in_pieces`] for the whole space, nothing of which is mapped outside
    /// of areas.
    pub(super) fn in_pieces_of_areas<'a, T>(
        &'a self,
        state: Locked<'a>,
        step: &mut dyn FnMut(&mut State, Range<VirtAddr>) -> Result<T>,
    ) -> Result<(Locked<'a>, T)> {
        let whole = VirtAddr(0)..USER_END;
        self.in_pieces_by(areas_end, state, whole.clone(), whole, step)
    }

    fn in_pieces_by<'a, T>(
        &'a self,
        end_of: fn(&State, &PageTable, Range<VirtAddr>) -> VirtAddr,
        mut state: Locked<'a>,
        range: Range<VirtAddr>,
        under_change: Range<VirtAddr>,
        step: &mut dyn FnMut(&mut State, Range<VirtAddr>) -> Result<T>,
    ) -> Result<(Locked<'a>, T)> {
        let table = self.table()?;
        let mut from = range.start;
        loop {
            let end = end_of(&state, table, from..range.end);
            let done = step(&mut state, from..end);
            if end == range.end || done.is_err() {
                if state.changing.take().is_some() {
                    self.settled.wake_all();
                }
                return done.map(|last| (state, last));
            }
            state.changing.get_or_insert_with(|| under_change.clone());
            drop(state);
            drop(done);
            resched_point();
            state = self.lock();
            from = end;
        }
    }
}

fn piece_end(state: &State, table: &PageTable, range: Range<VirtAddr>) -> VirtAddr {
    let end = table.piece_end(range.start, range.end);
    let mut areas = state.areas.overlapping(range.start..end);
    areas.nth(PIECE_AREAS).map_or(end, |area| area.start)
}

/// The end of the first piece of `range` where nothing is mapped outside of areas: some that the
/// table can map little of, or a part of one that is long. Only that one is looked up in the
/// table, since to look for entries everywhere would cost more than most forks do.
pub(super) fn areas_end(state: &State, table: &PageTable, range: Range<VirtAddr>) -> VirtAddr {
    let mut room = PIECE_BYTES;
    for (number, area) in state.areas.overlapping(range.clone()).enumerate() {
        let part = area.clip(&range);
        let bytes = part.end.0 - part.start.0;
        room = match room.checked_sub(bytes) {
            Some(left) if number < PIECE_AREAS => left,
            _ if number == 0 => return table.piece_end(part.start, part.end),
            _ => return part.start,
        };
    }
    range.end
}
