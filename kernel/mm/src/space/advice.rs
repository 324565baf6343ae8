//! madvise, msync, mincore, and where pages are.

use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Gather;
use mach::mem::fallible::{TryGrow, TryPush};
use mach::numa::Node;
use sync::{Error, Result};
use vma::Area;

use super::address_space::{State, page_range, prot};
use super::populate::Touch;
use super::{AddressSpace, Object, Sharing};
use crate::refusal::refused;

/// What madvise can say that we act on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// The contents are not needed: private memory reads as zeros from now on.
    Discard,
    /// The same of locked memory too.
    DiscardLocked,
    /// The same where the memory is private and no file's; elsewhere it is an error.
    Free,
    /// It is needed soon: touch all of it.
    Populate(Touch),
    /// It is not needed soon, which says nothing of locked memory.
    PageOut,
    /// A child shall not have it, or shall again.
    Fork(bool),
    /// A child shall find zeros, or a copy again.
    WipeOnFork(bool),
    /// Large pages are wanted, or are not.
    LargePages(bool),
    /// What only must be there.
    Nothing,
}

/// Bytes of an object.
type Part = (Object, Range<u64>);

impl AddressSpace {
    /// Acts on an advice about a range. Holes are skipped and reported at the end.
    pub fn advise(&self, start: VirtAddr, bytes: u64, advice: Advice) -> Result<()> {
        if start.page_offset() != 0 {
            return Err(Error::Invalid);
        }
        if bytes == 0 {
            return Ok(());
        }
        let range = page_range(start, bytes).ok_or(Error::Invalid)?;
        if let Advice::Populate(touch) = advice {
            return Ok(self.populate(range, touch)?);
        }
        let mut is_covered = true;
        self.in_pieces(self.lock_settled(), range, &mut |state, piece| {
            is_covered &= state.areas.covers(piece.clone());
            self.advise_piece(state, piece, advice)
        })?;
        is_covered.then_some(()).ok_or(Error::OutOfMemory)
    }

    fn advise_piece(
        &self,
        state: &mut State,
        piece: Range<VirtAddr>,
        advice: Advice,
    ) -> Result<()> {
        let is_private = |area: &Area<Object>| !area.traits.shared && area.backing.is_none();
        let needs_private = matches!(advice, Advice::Free | Advice::WipeOnFork(true));
        if needs_private && !state.areas.overlapping(piece.clone()).all(is_private) {
            return Err(Error::Invalid);
        }
        let spares_locked = matches!(advice, Advice::Discard | Advice::Free | Advice::PageOut);
        let is_locked = |area: &Area<Object>| area.traits.locked;
        if spares_locked && state.areas.overlapping(piece.clone()).any(is_locked) {
            return Err(Error::Invalid);
        }
        match advice {
            Advice::Discard | Advice::DiscardLocked | Advice::Free => self.discard(piece)?,
            Advice::Fork(inherit) => {
                state
                    .areas
                    .update(piece, |area| area.traits.no_fork = !inherit)
                    .map_err(refused)?;
            }
            Advice::WipeOnFork(wipe) => {
                state
                    .areas
                    .update(piece, |area| area.traits.wipe_on_fork = wipe)
                    .map_err(refused)?;
            }
            Advice::LargePages(wanted) => {
                state
                    .areas
                    .update(piece, |area| {
                        area.traits.large_pages = wanted;
                        area.traits.small_pages = !wanted;
                    })
                    .map_err(refused)?;
            }
            Advice::Populate(_) | Advice::PageOut | Advice::Nothing => {}
        }
        Ok(())
    }

    /// Has `bring` bring shared pages of a range that were stored to, to their files: bytes of an object. Blocks.
    pub fn sync(
        &self,
        start: VirtAddr,
        bytes: u64,
        bring: impl Fn(&Object, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        if bytes == 0 && start.page_offset() == 0 {
            return Ok(());
        }
        let range = page_range(start, bytes).ok_or(Error::Invalid)?;
        let (covered, shared) = self.begin_sync(&range)?;
        for (object, bytes) in shared {
            bring(&object, bytes)?;
        }
        if covered {
            Ok(())
        } else {
            Err(Error::OutOfMemory)
        }
    }

    /// Makes the next store to each shared page fault, so that it is marked again, and
    /// lists the objects with the bytes of them.
    fn begin_sync(&self, range: &Range<VirtAddr>) -> Result<(bool, Vec<Part>)> {
        let table = self.table()?;
        let mut shared = Vec::new();
        let mut is_covered = true;
        self.in_pieces(self.lock_settled(), range.clone(), &mut |state, piece| {
            is_covered &= state.areas.covers(piece.clone());
            let mut gather = Gather::new(table);
            let areas = state.areas.overlapping(piece.clone());
            for area in areas.filter(|area| area.traits.shared) {
                let part = area.clip(&piece);
                let rights = prot(area.access).without_write();
                table.protect(part.start, part.end, rights, false, &mut gather);
                if let (Some(backing), Some(from)) = (&area.backing, area.offset_of(part.start)) {
                    let to = from + (part.end - part.start);
                    add_part(&mut shared, &backing.object, from..to)?;
                }
            }
            Ok(())
        })?;
        Ok((is_covered, shared))
    }

    /// For each page of a range, whether an access would find it: it is mapped, or its object
    /// has it at hand.
    pub fn resident(&self, start: VirtAddr, bytes: u64) -> Result<Vec<bool>> {
        let range = page_range(start, bytes).ok_or(Error::OutOfMemory)?;
        let pages = (range.end - range.start) as usize / PAGE_BYTES;
        let mut resident = Vec::new();
        resident.make_room(pages).map_err(|_| Error::OutOfMemory)?;
        resident.resize(pages, false);
        let table = self.table()?;
        self.in_pieces(self.lock_settled(), range.clone(), &mut |state, piece| {
            if !state.areas.covers(piece.clone()) {
                return Err(Error::OutOfMemory);
            }
            let mut note = |at: VirtAddr| {
                if let Some(slot) = resident.get_mut((at - range.start) as usize / PAGE_BYTES) {
                    *slot = true;
                }
            };
            table.for_each(piece.start, piece.end, &mut |at, _, _| note(at));
            for area in state.areas.overlapping(piece.clone()) {
                at_hand(area, area.clip(&piece), &mut note);
            }
            Ok(())
        })?;
        Ok(resident)
    }

    /// Whether there is no gap in a range.
    ///
    /// Errors: `BadAddress` if there is one, or it lies outside of the program's part.
    pub fn check_mapped(&self, start: VirtAddr, bytes: u64) -> Result<()> {
        let range = page_range(start, bytes).ok_or(Error::BadAddress)?;
        self.in_pieces(self.lock_settled(), range, &mut |state, piece| match state
            .areas
            .covers(piece)
        {
            true => Ok(()),
            false => Err(Error::BadAddress),
        })?;
        Ok(())
    }

    /// The node of the page at `at`, if it is resident.
    pub fn node_of(&self, at: VirtAddr) -> Result<Node> {
        let page = self
            .table()?
            .page(at.page_floor())
            .ok_or(Error::BadAddress)?;
        Ok(mach::mem::node_of(page.phys()))
    }
}

/// Calls `note` for the pages of a part of an area that its object has.
fn at_hand(area: &Area<Object>, part: Range<VirtAddr>, note: &mut dyn FnMut(VirtAddr)) {
    let (Some(backing), Some(offset)) = (&area.backing, area.offset_of(part.start)) else {
        return;
    };
    let sharing = match area.traits.shared {
        true => Sharing::Shared,
        false => Sharing::Private,
    };
    let first = offset / PAGE_BYTES as u64;
    let pages = first..first + (part.end - part.start) / PAGE_BYTES as u64;
    let memory = &backing.object.memory;
    memory.ready_pages(pages, sharing, &mut |index, _| {
        note(part.start + (index - first) * PAGE_BYTES as u64);
    });
}

/// Adds bytes of an object, to the last ones where these go on.
fn add_part(parts: &mut Vec<Part>, object: &Object, bytes: Range<u64>) -> Result<()> {
    if let Some((last, before)) = parts.last_mut()
        && last == object
        && before.end == bytes.start
    {
        before.end = bytes.end;
        return Ok(());
    }
    parts.try_push((object.clone(), bytes))?;
    Ok(())
}
