//! What limits let a program map: RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK (setrlimit(2)).
//!
//! All areas count for the first, private writable ones that are no stack for the second,
//! locked ones for the third. The two latter are summed up only where they are limited.

use core::ops::Range;

use base::VirtAddr;
use cred::{Capability, Resource, UNLIMITED};
use mach::mem::USER_END;
use sync::{Error, Result};
use vma::{Area, Traits};

use super::address_space::State;
use super::{Object, Rights};

/// Bytes that are added to a space.
#[derive(Clone, Copy)]
pub(super) struct Growth {
    pub bytes: u64,
    pub access: Rights,
    pub traits: Traits,
}

/// Whether the current thread's space may grow so.
///
/// Errors: `OutOfMemory`.
pub(super) fn check_growth(state: &State, growth: Growth) -> Result<()> {
    let limit = cred::limit(Resource::AddressBytes);
    if state.areas.bytes().saturating_add(growth.bytes) > limit {
        return Err(Error::OutOfMemory);
    }
    match is_data(growth.access, growth.traits) {
        true => check_data(state, growth.bytes),
        false => Ok(()),
    }
}

/// Whether so many bytes more may be data.
///
/// Errors: `OutOfMemory`.
pub(super) fn check_data(state: &State, more: u64) -> Result<()> {
    let limit = cred::limit(Resource::DataBytes);
    let data = || {
        sum(state, everything(), |area| {
            is_data(area.access, area.traits)
        })
    };
    match limit == UNLIMITED || data().saturating_add(more) <= limit {
        true => Ok(()),
        false => Err(Error::OutOfMemory),
    }
}

/// Bytes of a range that become data with these rights.
pub(super) fn new_data(state: &State, range: Range<VirtAddr>, access: Rights) -> u64 {
    let becomes =
        |area: &Area<Object>| is_data(access, area.traits) && !is_data(area.access, area.traits);
    sum(state, range, becomes)
}

fn is_data(access: Rights, traits: Traits) -> bool {
    access.write && !traits.shared && !traits.grows_down
}

/// Whether the current thread may lock so many bytes more than the space has locked.
///
/// Errors: `OutOfMemory`; `NotPermitted` where it may lock nothing at all.
pub fn check_lock(locked: impl FnOnce() -> u64, more: u64) -> Result<()> {
    let limit = cred::limit(Resource::LockedBytes);
    let is_free = || cred::credentials().with(|who| who.has(Capability::IpcLock));
    if limit == UNLIMITED || is_free() {
        return Ok(());
    }
    match limit {
        0 => Err(Error::NotPermitted),
        limit if locked().saturating_add(more) > limit => Err(Error::OutOfMemory),
        _ => Ok(()),
    }
}

/// Bytes that are locked.
pub(super) fn locked_bytes(state: &State, range: Range<VirtAddr>) -> u64 {
    sum(state, range, |area| area.traits.locked)
}

/// The addresses of all areas.
pub(super) fn everything() -> Range<VirtAddr> {
    VirtAddr(0)..USER_END
}

fn sum(state: &State, range: Range<VirtAddr>, counts: impl Fn(&Area<Object>) -> bool) -> u64 {
    let areas = state.areas.overlapping(range.clone());
    let parts = areas
        .filter(|area| counts(area))
        .map(|area| area.clip(&range));
    parts.map(|part| part.end - part.start).sum()
}
