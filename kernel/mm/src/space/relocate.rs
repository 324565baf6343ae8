//! Moving an area and its pages to other addresses.
//!
//! What may find no memory comes before what other threads see: first the tables for the pages are
//! made, then the old area is given up, whose place in the map the new one takes, and only then
//! page after page moves. All the time both places are under change.

use core::ops::Range;

use base::VirtAddr;
use mach::mem::Gather;
use sync::{Error, Result};
use vma::{Area, Backing};

use super::address_space::{Locked, State};
use super::{AddressSpace, Object};
use crate::refusal::refused;

/// What is done with a piece of the old place, and the address that it goes to.
type MoveStep<'a> = dyn FnMut(&State, Range<VirtAddr>, VirtAddr) -> Result<()> + 'a;

impl AddressSpace {
    /// Moves `old`, which lies in `area`, to `new`, where nothing is mapped.
    pub(super) fn move_area<'a>(
        &'a self,
        state: Locked<'a>,
        keep_old: bool,
        area: &Area<Object>,
        old: &Range<VirtAddr>,
        new: &Range<VirtAddr>,
    ) -> Result<()> {
        let table = self.table()?;
        let (mut state, ()) = self.prepare_move(state, old, new)?;
        let removed = match keep_old {
            true => None,
            false => Some(state.areas.remove(old.clone()).map_err(refused)?),
        };
        let mut target = continuation(area, old.start);
        (target.start, target.end) = (new.start, new.end);
        // Where an area was removed, there is room for one.
        state.areas.insert(target).map_err(refused)?;
        let (state, ()) = self.for_each_move(state, old, new, &mut |state, piece, to| {
            let mut gather = Gather::new(table);
            table.relocate(piece.start, to, piece.end - piece.start, &mut gather);
            let hole = emptied(state, &piece, old.end);
            table.sweep(piece, hole, &mut gather);
            Ok(())
        })?;
        drop(state);
        drop(removed);
        Ok(())
    }

    /// Makes the tables for the pages of `old` at `new`; without memory for all of them, none.
    fn prepare_move<'a>(
        &'a self,
        state: Locked<'a>,
        old: &Range<VirtAddr>,
        new: &Range<VirtAddr>,
    ) -> Result<(Locked<'a>, ())> {
        let table = self.table()?;
        let prepared = self.for_each_move(state, old, new, &mut |_, piece, to| {
            let is_ready = table.prepare_relocation(piece.start, to, piece.end - piece.start);
            is_ready.then_some(()).ok_or(Error::OutOfMemory)
        });
        if prepared.is_err() {
            self.in_pieces(self.lock_settled(), new.clone(), &mut |state, piece| {
                let hole = emptied(state, &piece, new.end);
                table.sweep(piece, hole, &mut Gather::new(table));
                Ok(())
            })?;
        }
        prepared
    }

    /// Calls `step` with each piece of `old` and where it goes. Nobody else changes either place
    /// meanwhile.
    fn for_each_move<'a>(
        &'a self,
        state: Locked<'a>,
        old: &Range<VirtAddr>,
        new: &Range<VirtAddr>,
        step: &mut MoveStep<'_>,
    ) -> Result<(Locked<'a>, ())> {
        let both = old.start.min(new.start)..old.end.max(new.end);
        self.in_pieces_within(state, old.clone(), both, &mut |state, piece| {
            let to = new.start + (piece.start - old.start);
            step(state, piece, to)
        })
    }
}

/// The hole that a piece lies in: up to its end, if more pieces lie behind it before `end`, which
/// are not empty yet.
fn emptied(state: &State, piece: &Range<VirtAddr>, end: VirtAddr) -> Range<VirtAddr> {
    let hole = state.areas.hole_at(piece.start);
    match piece.end < end {
        true => hole.start..hole.end.min(piece.end),
        false => hole,
    }
}

/// An area like `area` whose object starts where `area` shows it at `at`.
pub(super) fn continuation(area: &Area<Object>, at: VirtAddr) -> Area<Object> {
    let mut like = area.clone();
    if let Some(Backing { offset, .. }) = &mut like.backing {
        *offset += at - area.start;
    }
    like
}
