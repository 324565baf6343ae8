//! mremap: growing, shrinking and moving a mapping.
//!
//! A mapping is moved as a whole, or it stays where it is (`relocate`). What is to be unmapped for
//! it (the target, and what a smaller size leaves over) goes first, as on Linux, and stays away if
//! the move fails.

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use sync::{Error, Result};
use vma::Area;

use super::address_space::{State, page_range};
use super::limits::{Growth, check_growth, check_lock, everything, locked_bytes};
use super::map::{choose_place, promised_in};
use super::relocate::continuation;
use super::{AddressSpace, Object, Place};
use crate::refusal::refused;

/// Where the mapping may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// It has to stay.
    Stay,
    /// It may move if it can not grow where it is.
    Anywhere,
    /// It has to go here; what is there is unmapped.
    Fixed(VirtAddr),
}

/// What mremap asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remap {
    /// The mapping.
    pub start: VirtAddr,
    /// Its length in bytes now.
    pub old_bytes: u64,
    /// Its length in bytes afterwards.
    pub new_bytes: u64,
    /// Where.
    pub target: Target,
    /// The old place stays mapped and is empty (`MREMAP_DONTUNMAP`).
    pub keep_old: bool,
}

impl AddressSpace {
    /// Changes size or place of a mapping; returns where it is.
    pub fn remap(&self, request: Remap) -> Result<VirtAddr> {
        let old_bytes = round_up(request.old_bytes)?;
        let new_bytes = round_up(request.new_bytes)?;
        if new_bytes == 0 {
            return Err(Error::Invalid);
        }
        let old = page_range(request.start, old_bytes.max(1)).ok_or(Error::Invalid)?;
        if old_bytes == 0 {
            return self.show_again(request, new_bytes);
        }
        let fixed = matches!(request.target, Target::Fixed(_));
        let in_place = match fixed {
            true => None,
            false => self.resize_in_place(request, old.clone(), new_bytes)?,
        };
        if let Some(at) = in_place {
            return Ok(at);
        }
        if let Target::Fixed(to) = request.target {
            let new = page_range(to, new_bytes).ok_or(Error::Invalid)?;
            if new.start < old.end && old.start < new.end {
                return Err(Error::Invalid);
            }
        }
        let kept = old.start..old.end.min(old.start + new_bytes);
        if kept.end < old.end {
            whole_area(&self.lock_settled(), &kept)?;
            self.unmap(kept.end, old.end - kept.end)?;
        }
        self.relocate(request, kept, new_bytes)
    }

    /// Shows the shared object at the mapping's start a second time: what is asked for by an
    /// old size of 0.
    fn show_again(&self, request: Remap, new_bytes: u64) -> Result<VirtAddr> {
        let at = request.start;
        let area = whole_area(&self.lock_settled(), &(at..at))?;
        if !area.traits.shared {
            return Err(Error::Invalid);
        }
        if request.target == Target::Stay {
            return Err(Error::OutOfMemory);
        }
        let request = Remap {
            keep_old: true,
            ..request
        };
        self.relocate(request, at..at, new_bytes)
    }

    /// Shrinks, or grows into free addresses; `None` if it would have to move.
    fn resize_in_place(
        &self,
        request: Remap,
        old: Range<VirtAddr>,
        new_bytes: u64,
    ) -> Result<Option<VirtAddr>> {
        let end = old.start.checked_add(new_bytes).ok_or(Error::Invalid)?;
        if request.keep_old {
            return Ok(None);
        }
        if end <= old.end {
            // What lies behind the first area need not be of it, nor be there.
            whole_area(&self.lock_settled(), &(old.start..old.start))?;
            if end < old.end {
                self.unmap(end, old.end - end)?;
            }
            return Ok(Some(old.start));
        }
        let mut state = self.lock_settled();
        let area = whole_area(&state, &old)?;
        if old.end == area.end
            && state
                .areas
                .is_free(old.end, end - old.end, super::layout::ANYWHERE)
        {
            check_growth(&state, growth(&area, end - old.end))?;
            check_locked(&state, &area, end - old.end)?;
            if area.traits.promised {
                state.promise.grow(end - old.end)?;
            }
            let mut more = continuation(&area, old.end);
            (more.start, more.end) = (old.end, end);
            state.areas.insert(more).map_err(refused)?;
            return Ok(Some(old.start));
        }
        match request.target {
            Target::Stay => Err(Error::OutOfMemory),
            _ => Ok(None),
        }
    }

    /// Moves what is left of a mapping, `old`, and makes it `new_bytes` long.
    fn relocate(&self, request: Remap, old: Range<VirtAddr>, new_bytes: u64) -> Result<VirtAddr> {
        let mut state = self.lock_settled();
        let area = whole_area(&state, &old)?;
        let place = match request.target {
            Target::Fixed(at) => Place::Fixed(at),
            _ => Place::Hint(VirtAddr(0)),
        };
        let at = choose_place(&mut state, place, new_bytes)?;
        let new = at..at + new_bytes;
        let old_bytes = old.end - old.start;
        if new.start < old.end && old.start < new.end {
            return Err(Error::Invalid);
        }
        check_growth(&state, growth(&area, new_bytes))?;
        check_locked(&state, &area, new_bytes.saturating_sub(old_bytes))?;
        if area.traits.promised {
            let kept = if request.keep_old {
                0
            } else {
                old.end - old.start
            };
            let replaced = promised_in(&state, new.clone());
            let more = new_bytes.saturating_sub(kept + replaced);
            state.promise.grow(more)?;
        }
        let (state, replaced) = self.remove(state, new.clone())?;
        let moved = self.move_area(state, request.keep_old, &area, &old, &new);
        drop((replaced, area));
        moved.map(|()| at)
    }
}

/// What an area grows by.
fn growth(area: &Area<Object>, bytes: u64) -> Growth {
    Growth {
        bytes,
        access: area.access,
        traits: area.traits,
    }
}

/// Obeys `RLIMIT_MEMLOCK` where a locked area grows.
///
/// Errors: `WouldBlock`.
fn check_locked(state: &State, area: &Area<Object>, more: u64) -> Result<()> {
    if !area.traits.locked {
        return Ok(());
    }
    let locked = || locked_bytes(state, everything());
    check_lock(locked, more).map_err(|_| Error::WouldBlock)
}

fn round_up(bytes: u64) -> Result<u64> {
    bytes
        .checked_next_multiple_of(PAGE_BYTES as u64)
        .ok_or(Error::Invalid)
}

/// The one area that holds all of `range`.
fn whole_area(state: &State, range: &Range<VirtAddr>) -> Result<Area<Object>> {
    let area = state.areas.find(range.start).ok_or(Error::BadAddress)?;
    if area.end < range.end {
        return Err(Error::BadAddress);
    }
    Ok(area.clone())
}
