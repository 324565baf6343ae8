//! The program break.

use base::VirtAddr;
use cred::Resource;
use sync::{Error, Result};
use vma::{Area, Traits};

use super::address_space::{Locked, State};
use super::layout::ANYWHERE;
use super::limits::{Growth, check_growth};
use super::map::check_locked_mapping;
use super::{AddressSpace, Locking, Rights};
use crate::refusal::refused;

impl AddressSpace {
    /// Says where the heap of a new program starts; it is empty.
    pub fn start_heap(&self, at: VirtAddr) {
        let at = at.page_ceil();
        self.lock().heap = at..at;
    }

    /// Where the heap starts and ends.
    pub fn heap(&self) -> core::ops::Range<VirtAddr> {
        self.lock().heap.clone()
    }

    /// Moves the program break to `end`; returns where it is now, which is where it was
    /// if that is not possible.
    pub fn set_break(&self, end: VirtAddr) -> Result<VirtAddr> {
        let mut state = self.lock_settled();
        let before = state.heap.end;
        if end.page_ceil() < before.page_ceil() {
            return Ok(self.shrink_heap(state, end).unwrap_or(before));
        }
        if grow_heap(&mut state, end).is_err() {
            return Ok(before);
        }
        state.heap.end = end;
        let is_populated = state.lock_future == Some(Locking::Now);
        drop(state);
        if is_populated {
            self.populate_possible(before.page_ceil()..end.page_ceil());
        }
        Ok(end)
    }

    fn shrink_heap(&self, state: Locked<'_>, end: VirtAddr) -> Result<VirtAddr> {
        if end < state.heap.start {
            return Err(Error::Invalid);
        }
        let unused = end.page_ceil()..state.heap.end.page_ceil();
        let (mut state, removed) = self.remove(state, unused)?;
        state.heap.end = end;
        drop(state);
        drop(removed);
        Ok(end)
    }
}

fn grow_heap(state: &mut State, end: VirtAddr) -> Result<()> {
    let limit = cred::limit(Resource::DataBytes);
    if end < state.heap.start || end - state.heap.start > limit {
        return Err(Error::OutOfMemory);
    }
    let (from, to) = (state.heap.end.page_ceil(), end.page_ceil());
    if to == from {
        return Ok(());
    }
    if !state.areas.is_free(from, to - from, ANYWHERE) {
        return Err(Error::OutOfMemory);
    }
    let traits = Traits {
        heap: true,
        promised: true,
        locked: state.lock_future.is_some(),
        ..Traits::default()
    };
    let growth = Growth {
        bytes: to - from,
        access: Rights::READ_WRITE,
        traits,
    };
    check_growth(state, growth)?;
    if traits.locked {
        check_locked_mapping(state, to - from)?;
    }
    state.promise.grow(to - from)?;
    state
        .areas
        .insert(Area {
            start: from,
            end: to,
            access: Rights::READ_WRITE,
            limit: Rights {
                read: true,
                write: true,
                exec: true,
            },
            traits,
            backing: None,
        })
        .map_err(refused)?;
    Ok(())
}
