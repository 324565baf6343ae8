//! mmap, munmap, mprotect.

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Gather;
use sync::{Error, Result};
use vma::{Area, Backing, Traits};

use super::address_space::{Locked, State, page_range, prot};
use super::commit;
use super::gone::Gone;
use super::layout::ANYWHERE;
use super::limits::{
    Growth, check_data, check_growth, check_lock, everything, locked_bytes, new_data,
};
use super::{AddressSpace, Locking, Object, Rights};
use crate::refusal::refused;

/// Where a mapping goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Anywhere, here if it is free (0: no wish).
    Hint(VirtAddr),
    /// Exactly here, instead of what is there.
    Fixed(VirtAddr),
    /// Exactly here, if nothing is there.
    FixedIfFree(VirtAddr),
}

/// What mmap asks for.
#[derive(Clone)]
pub struct Mapping {
    /// Where.
    pub place: Place,
    /// Bytes; rounded up to pages.
    pub bytes: u64,
    /// What the program may do.
    pub access: Rights,
    /// What it may ask for later.
    pub limit: Rights,
    /// Other properties.
    pub traits: Traits,
    /// An object and the byte of it where the mapping starts, or anonymous memory.
    pub object: Option<(Object, u64)>,
    /// Make all pages resident now.
    pub populate: bool,
}

impl Mapping {
    /// Private anonymous memory.
    pub fn anonymous(place: Place, bytes: u64, access: Rights) -> Self {
        let limit = Rights {
            read: true,
            write: true,
            exec: true,
        };
        let traits = Traits::default();
        Self {
            place,
            bytes,
            access,
            limit,
            traits,
            object: None,
            populate: false,
        }
    }
}

impl AddressSpace {
    /// Maps memory; returns where.
    pub fn map(&self, mapping: Mapping) -> Result<VirtAddr> {
        let bytes = mapping.bytes.checked_next_multiple_of(PAGE_BYTES as u64);
        let bytes = bytes
            .filter(|&bytes| bytes <= ANYWHERE.high.0)
            .ok_or(Error::OutOfMemory)?;
        if bytes == 0 {
            return Err(Error::Invalid);
        }
        let (at, is_populated) = self.insert(&mapping, bytes)?;
        if is_populated {
            self.populate_possible(at..at + bytes);
        }
        Ok(at)
    }

    /// Where it is, and whether its pages are to be resident now.
    fn insert(&self, mapping: &Mapping, bytes: u64) -> Result<(VirtAddr, bool)> {
        let removed;
        let mut state = self.lock_settled();
        let at = choose_place(&mut state, mapping.place, bytes)?;
        let range = at..at + bytes;
        let mut traits = promised(mapping);
        let is_populated =
            mapping.populate || traits.locked || state.lock_future == Some(Locking::Now);
        traits.locked |= state.lock_future.is_some();
        let access = mapping.access;
        check_growth(
            &state,
            Growth {
                bytes,
                access,
                traits,
            },
        )?;
        if traits.locked {
            check_locked_mapping(&state, bytes)?;
        }
        if traits.promised {
            let replaced = match mapping.place {
                Place::Fixed(_) => promised_in(&state, range.clone()),
                Place::Hint(_) | Place::FixedIfFree(_) => 0,
            };
            state.promise.grow(bytes.saturating_sub(replaced))?;
        }
        (state, removed) = match mapping.place {
            Place::Fixed(_) => {
                let (state, removed) = self.remove(state, range.clone())?;
                (state, Some(removed))
            }
            Place::Hint(_) | Place::FixedIfFree(_) => (state, None),
        };
        let backing = mapping
            .object
            .clone()
            .map(|(object, offset)| Backing { object, offset });
        let inserted = state.areas.insert(Area {
            start: range.start,
            end: range.end,
            access: mapping.access,
            limit: mapping.limit,
            traits,
            backing,
        });
        drop(state);
        drop(removed);
        inserted.map_err(refused)?;
        Ok((at, is_populated))
    }

    /// Takes pages and areas of a range out, piece by piece. What comes back is dropped without the lock.
    pub(super) fn remove<'a>(
        &'a self,
        state: Locked<'a>,
        range: Range<VirtAddr>,
    ) -> Result<(Locked<'a>, Gone)> {
        let mut gone = Gone::default();
        let (state, ()) = self.in_pieces(state, range, &mut |state, piece| {
            gone.make_room()?;
            let removed = state.areas.remove(piece.clone()).map_err(refused)?;
            let bytes = removed.bytes;
            gone.take(removed);
            match bytes {
                0 => Ok(()),
                _ => self.discard_with_tables(state, piece),
            }
        })?;
        Ok((state, gone))
    }

    /// Takes the pages of a piece out of the table, whose areas are gone, and tables that are
    /// not needed any more.
    fn discard_with_tables(&self, state: &State, piece: Range<VirtAddr>) -> Result<()> {
        self.note_resident();
        let table = self.table()?;
        let mut gather = Gather::new(table);
        table.unmap(piece.start, piece.end, &mut gather);
        let hole = state.areas.hole_at(piece.start);
        table.sweep(piece, hole, &mut gather);
        Ok(())
    }

    /// Takes the pages of a piece out of the table.
    pub(super) fn discard(&self, piece: Range<VirtAddr>) -> Result<()> {
        self.note_resident();
        let table = self.table()?;
        table.unmap(piece.start, piece.end, &mut Gather::new(table));
        Ok(())
    }

    /// Unmaps whatever is in the range.
    pub fn unmap(&self, start: VirtAddr, bytes: u64) -> Result<()> {
        let range = page_range(start, bytes).ok_or(Error::Invalid)?;
        let (state, removed) = self.remove(self.lock_settled(), range)?;
        drop(state);
        drop(removed);
        Ok(())
    }

    /// Unmaps an object that is shown from its first byte on at `start`, and all of it that was
    /// mapped with that. `Invalid` if it is none of those that are wanted.
    pub fn unmap_object(
        &self,
        start: VirtAddr,
        is_wanted: &dyn Fn(&Object) -> bool,
    ) -> Result<Object> {
        let (object, end) = {
            let state = self.lock_settled();
            let area = state.areas.find(start).filter(|area| area.start == start);
            let backing = area.and_then(|area| area.backing.as_ref());
            let object = backing
                .filter(|backing| backing.offset == 0)
                .map(|backing| backing.object.clone())
                .filter(is_wanted)
                .ok_or(Error::Invalid)?;
            let end = end_of_object(&state, start, &object);
            (object, end)
        };
        self.unmap(start, end - start)?;
        Ok(object)
    }

    /// Changes what the program may do with a range, all of which must be mapped: up to where it
    /// is not, or must not be changed so.
    pub fn protect(&self, start: VirtAddr, bytes: u64, access: Rights) -> Result<()> {
        if bytes == 0 && start.page_offset() == 0 {
            return Ok(());
        }
        let range = page_range(start, bytes).ok_or(Error::Invalid)?;
        let (mut data, mut more) = (0, 0);
        let state = self.lock_settled();
        let (mut state, ()) = self.in_pieces(state, range.clone(), &mut |state, piece| {
            data += new_data(state, piece.clone(), access);
            more += newly_promised(state, piece, access);
            Ok(())
        })?;
        check_data(&state, data)?;
        state.promise.grow(more)?;
        let (state, ()) = self.in_pieces(state, range, &mut |state, piece| {
            self.protect_piece(state, &piece, access)
        })?;
        drop(state);
        Ok(())
    }

    fn protect_piece(
        &self,
        state: &mut State,
        piece: &Range<VirtAddr>,
        access: Rights,
    ) -> Result<()> {
        if !state.areas.covers(piece.clone()) {
            return Err(Error::OutOfMemory);
        }
        let forbids = |area: &Area<Object>| !area.limit.covers(access);
        if state.areas.overlapping(piece.clone()).any(forbids) {
            return Err(Error::AccessDenied);
        }
        state
            .areas
            .update(piece.clone(), |area| {
                area.traits.promised |= counts(access, area.traits);
                area.access = access;
            })
            .map_err(refused)?;
        let table = self.table()?;
        let mut gather = Gather::new(table);
        for area in state.areas.overlapping(piece.clone()) {
            let part = area.clip(piece);
            // The first store to a shared page must fault, to mark it.
            let rights = prot(access);
            let rights = if area.traits.shared {
                rights.without_write()
            } else {
                rights
            };
            table.protect(part.start, part.end, rights, true, &mut gather);
        }
        Ok(())
    }
}

/// The end of what shows `object` in a row from `start` on, as one mapping would.
fn end_of_object(state: &State, start: VirtAddr, object: &Object) -> VirtAddr {
    let mut end = start;
    for area in state.areas.overlapping(start..ANYWHERE.high) {
        let goes_on = area.backing.as_ref().is_some_and(|backing| {
            backing.object == *object && backing.offset == area.start - start
        });
        if !goes_on || area.start != end {
            break;
        }
        end = area.end;
    }
    end
}

/// Whether an area counts as promised memory once a program has these rights.
fn counts(access: Rights, traits: Traits) -> bool {
    access.write && !traits.shared && !traits.no_reserve
}

/// The traits of a new area. That it shall not count is heard only where nothing is limited.
fn promised(mapping: &Mapping) -> Traits {
    let mut traits = mapping.traits;
    traits.no_reserve &= !commit::is_limited();
    traits.promised = counts(mapping.access, traits);
    traits
}

/// Bytes of promised memory in `range`.
pub(super) fn promised_in(state: &State, range: Range<VirtAddr>) -> u64 {
    let areas = state.areas.overlapping(range.clone());
    let parts = areas.filter(|area| area.traits.promised);
    parts
        .map(|area| area.clip(&range))
        .map(|part| part.end - part.start)
        .sum()
}

/// Bytes in `range` that begin to count when the program gets `access`.
fn newly_promised(state: &State, range: Range<VirtAddr>, access: Rights) -> u64 {
    let areas = state.areas.overlapping(range.clone());
    let parts = areas.filter(|area| !area.traits.promised && counts(access, area.traits));
    parts
        .map(|area| area.clip(&range))
        .map(|part| part.end - part.start)
        .sum()
}

/// Obeys `RLIMIT_MEMLOCK` for a mapping that is born locked.
///
/// Errors: `NotPermitted`, `WouldBlock`.
pub(super) fn check_locked_mapping(state: &State, bytes: u64) -> Result<()> {
    let locked = || locked_bytes(state, everything());
    check_lock(locked, bytes).map_err(|error| match error {
        Error::OutOfMemory => Error::WouldBlock,
        error => error,
    })
}

pub(super) fn choose_place(state: &mut State, place: Place, bytes: u64) -> Result<VirtAddr> {
    match place {
        Place::Hint(at) => {
            let at = at.page_floor();
            if at.0 != 0 && state.areas.is_free(at, bytes, ANYWHERE) {
                return Ok(at);
            }
            let window = state.layout.window();
            let gap = state.areas.highest_gap(bytes, PAGE_BYTES as u64, window);
            gap.ok_or(Error::OutOfMemory)
        }
        Place::Fixed(at) | Place::FixedIfFree(at) if at.page_offset() != 0 => Err(Error::Invalid),
        Place::Fixed(at) => {
            let end = at.checked_add(bytes).filter(|&end| end <= ANYWHERE.high);
            end.map(|_| at).ok_or(Error::OutOfMemory)
        }
        Place::FixedIfFree(at) => {
            page_range(at, bytes).ok_or(Error::OutOfMemory)?;
            let free = state.areas.is_free(at, bytes, ANYWHERE);
            if free { Ok(at) } else { Err(Error::Exists) }
        }
    }
}
