//! Locked memory: mlock(2), mlock2(2), mlockall(2) and their opposites.
//!
//! Nothing is ever paged out, so what is resident is as good as locked. What is left of locking
//! is what a program can see: pages come in now or at their first use, they count
//! (RLIMIT_MEMLOCK, `VmLck`), and madvise(2) does not take them away.

use core::ops::Range;

use base::VirtAddr;
use sync::{Error, Result};

use super::address_space::{State, page_range};
use super::limits::{check_lock, everything, locked_bytes};
use super::populate::{Touch, Unpopulated};
use super::{AddressSpace, FaultError};
use crate::refusal::refused;

/// When locked pages come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locking {
    /// As soon as they are locked.
    Now,
    /// At their first use (`MLOCK_ONFAULT`).
    OnFault,
}

impl AddressSpace {
    /// Locks the pages of a range.
    ///
    /// Errors: `OutOfMemory` for a hole, a page that cannot be touched, and at the limit;
    /// `WouldBlock` if no memory is left; `NotPermitted` for who may lock nothing.
    pub fn lock_pages(&self, start: VirtAddr, bytes: u64, locking: Locking) -> Result<()> {
        self.mark_locked(start, bytes, true)?;
        if locking == Locking::OnFault || bytes == 0 {
            return Ok(());
        }
        let range = start.page_floor()..(start + bytes).page_ceil();
        self.populate(range, Touch::Usual).map_err(|why| match why {
            Unpopulated::Fault(FaultError::OutOfMemory) => Error::WouldBlock,
            Unpopulated::Ending => why.into(),
            _ => Error::OutOfMemory,
        })
    }

    /// Unlocks the pages of a range.
    ///
    /// Errors: `OutOfMemory` for a hole.
    pub fn unlock_pages(&self, start: VirtAddr, bytes: u64) -> Result<()> {
        self.mark_locked(start, bytes, false)
    }

    fn mark_locked(&self, start: VirtAddr, bytes: u64, locked: bool) -> Result<()> {
        let end = start.checked_add(bytes).ok_or(Error::Invalid)?;
        let start = start.page_floor();
        if end == start {
            return Ok(());
        }
        let range = page_range(start, end - start).ok_or(Error::OutOfMemory)?;
        let state = self.lock_settled();
        if locked {
            let own = locked_bytes(&state, range.clone());
            let all = || locked_bytes(&state, everything());
            check_lock(all, range.end - range.start - own)?;
        }
        self.in_pieces(state, range, &mut |state, piece| {
            if !state.areas.covers(piece.clone()) {
                return Err(Error::OutOfMemory);
            }
            set_locked(state, piece, locked)
        })?;
        Ok(())
    }

    /// Locks what is mapped now (`current`) and what will be from now on (`future`); without the
    /// latter, what is mapped later is not locked any more.
    ///
    /// Errors: `OutOfMemory` at the limit, `NotPermitted` for who may lock nothing.
    pub fn lock_all(&self, locking: Locking, current: bool, future: bool) -> Result<()> {
        let mut state = self.lock_settled();
        let mapped = state.areas.bytes();
        check_lock(|| 0, if current { mapped } else { 0 })?;
        state.lock_future = future.then_some(locking);
        drop(state);
        if current {
            self.mark_all_locked(true)?;
        }
        if current && locking == Locking::Now {
            self.populate_possible(everything());
        }
        Ok(())
    }

    /// Unlocks all that is mapped and will be.
    pub fn unlock_all(&self) -> Result<()> {
        self.lock_settled().lock_future = None;
        self.mark_all_locked(false)
    }

    fn mark_all_locked(&self, locked: bool) -> Result<()> {
        self.in_pieces_of_areas(self.lock_settled(), &mut |state, piece| {
            set_locked(state, piece, locked)
        })?;
        Ok(())
    }

    /// Whether any of a range is locked.
    pub fn has_locked(&self, start: VirtAddr, bytes: u64) -> bool {
        let state = self.lock_settled();
        page_range(start, bytes).is_some_and(|range| {
            let mut areas = state.areas.overlapping(range);
            areas.any(|area| area.traits.locked)
        })
    }

    /// Bytes that are locked.
    pub fn locked_bytes(&self) -> u64 {
        locked_bytes(&self.lock(), everything())
    }
}

fn set_locked(state: &mut State, piece: Range<VirtAddr>, locked: bool) -> Result<()> {
    state
        .areas
        .update(piece, |area| area.traits.locked = locked)
        .map_err(refused)?;
    Ok(())
}
