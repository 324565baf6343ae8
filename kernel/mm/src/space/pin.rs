//! Pinned pages: the kernel keeps them for a device or a ring, and its program goes on using them.
//!
//! The problem: both must see the same bytes. A reference keeps a page from being given back, but
//! not the program from being given another in its place: a fork makes private pages read-only,
//! and the next store would copy.
//!
//! The idea: what is pinned is made the program's alone first, by a store to each page, and its
//! area is then marked. A page of such an area is never copied (`fault`), and a fork gives the child
//! copies at once (`fork`), so the parent's stays writable. Linux does the same
//! (`FOLL_LONGTERM`, `copy_present_page`), but knows it of each page. What was pinned
//! stays marked until it is unmapped: forks copy it, and that is all.
//!
//! Invariant: pages of a marked area that is private are its program's and those who pinned them.
//! So only anonymous memory is pinned, private or shared; the latter needs no mark. Not so files: who
//! holds their pages would store to them when they are sealed (memfd_create(2)), when they no longer
//! belong to the file, or after they were brought to where they are kept. Nor pages of the kernel's
//! own that a program has mapped: rings, devices.

use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::fallible::TryGrow;
use sync::{Error, Result};
use vma::Area;

use super::address_space::{State, page_range};
use super::populate::{Touch, Unpopulated};
use super::{Access, AddressSpace, Object, Page};
use crate::refusal::refused;

/// How often a fork, an unmapping or the like may come between before we give up.
const TRIES: usize = 16;

impl AddressSpace {
    /// The pages of a range, which stay the program's wherever it maps them. May block.
    ///
    /// Errors: `BadAddress` for what is not mapped, cannot be stored to or is a file's;
    /// `OutOfMemory`; `WouldBlock` if others change the range all the time.
    pub fn pin(&self, start: VirtAddr, bytes: u64) -> Result<Vec<Page>> {
        let range = page_range(start, bytes).ok_or(Error::BadAddress)?;
        let count = (range.end - range.start) as usize / PAGE_BYTES;
        let mut pages = Vec::new();
        pages.make_room(count)?;
        for _ in 0..TRIES {
            self.populate(range.clone(), Touch::Write)
                .map_err(|why| match why {
                    Unpopulated::Hole | Unpopulated::Forbidden => Error::BadAddress,
                    why => why.into(),
                })?;
            self.hold(range.clone(), &mut pages)?;
            if pages.len() == count {
                return Ok(pages);
            }
            pages.clear();
        }
        Err(Error::WouldBlock)
    }

    /// Hands `take` the pages of a range as far as they are there and the program may access them so, those
    /// that are to be stored to only where they are pinned; how many. Never blocks.
    pub fn pages_at_hand(
        &self,
        start: VirtAddr,
        bytes: u64,
        access: Access,
        take: &mut dyn FnMut(Page),
    ) -> usize {
        let (Some(range), Ok(table)) = (page_range(start, bytes), self.table()) else {
            return 0;
        };
        let is_store = access == Access::Write;
        let state = self.lock();
        if state.changing.is_some() || (is_store && !is_pinned(&state, &range)) {
            return 0;
        }
        let pages = (range.start.0..range.end.0).step_by(PAGE_BYTES);
        let taken = pages.map_while(|at| {
            let (page, mapping) = table.mapped(VirtAddr(at))?;
            let may = match is_store {
                true => mapping.writable,
                false => mapping.present && !mapping.zeros,
            };
            may.then(|| take(page))
        });
        taken.count()
    }

    /// Adds the pages of a range that are the program's alone, up to the first that is not.
    fn hold(&self, range: Range<VirtAddr>, pages: &mut Vec<Page>) -> Result<()> {
        let table = self.table()?;
        let mut is_whole = true;
        self.in_pieces(self.lock_settled(), range, &mut |state, piece| {
            let count = (piece.end - piece.start) as usize / PAGE_BYTES;
            let before = pages.len();
            if !is_whole || pages.capacity() - before < count {
                return Ok(());
            }
            table.for_each(piece.start, piece.end, &mut |_, page, mapping| {
                if mapping.writable {
                    pages.push(page.clone());
                }
            });
            is_whole = pages.len() - before == count;
            match is_whole {
                true => mark(state, piece),
                false => Ok(()),
            }
        })?;
        Ok(())
    }
}

/// Whether one area has all of the range, and was marked, or needs no mark.
fn is_pinned(state: &State, range: &Range<VirtAddr>) -> bool {
    let area = state.areas.find(range.start);
    area.is_some_and(|area| {
        let is_kept = area.traits.pinned || area.traits.shared;
        area.end >= range.end && is_kept && is_anonymous(area)
    })
}

fn mark(state: &mut State, piece: Range<VirtAddr>) -> Result<()> {
    if is_pinned(state, &piece) {
        return Ok(());
    }
    if !state.areas.overlapping(piece.clone()).all(is_anonymous) {
        return Err(Error::BadAddress);
    }
    let pinned = state
        .areas
        .update(piece, |area| area.traits.pinned = !area.traits.shared);
    pinned.map_err(refused)?;
    Ok(())
}

fn is_anonymous(area: &Area<Object>) -> bool {
    let backing = area.backing.as_ref();
    backing.is_none_or(|backing| area.traits.shared && backing.object.memory.may_be_pinned())
}
