//! The members of a socket in other shards than its location's: a list that only grows.
//!
//! A socket gets most of its members at once, when it gets its name. More come with each
//! interface that comes to the stack later, so the list is in two parts: the first is a slice that
//! is read without a lock, and what came later has one. A member stays where its shard's interface
//! goes, for shards stay as well: the next interface of that shard finds it.
//!
//! Invariant: members are added under the socket's `naming`, each shard's once. The parts are
//! counted after they have grown, so whoever goes by the count finds what it promises.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, Ordering};

use mach::mem::fallible::{self, TryGrow};
use mach::sync::{Once, Spin};
use sync::Result;

use super::location::Location;

/// See the module.
#[derive(Default)]
pub struct MemberList {
    count: AtomicU16,
    first: Once<Box<[Location]>>,
    later: Once<Box<Spin<Vec<Location>>>>,
}

impl MemberList {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// All, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = Location> + '_ {
        (0..).map_while(|at| self.get(at))
    }

    /// The one in a shard.
    pub fn in_shard(&self, shard: u16) -> Option<Location> {
        let is_there = |member: &&Location| member.shard == shard;
        let first = self.first.get().map_or(&[][..], |first| first);
        let early = first.iter().find(is_there).copied();
        early.or_else(|| {
            let later = self.later.get()?.lock();
            later.iter().find(is_there).copied()
        })
    }

    fn get(&self, at: usize) -> Option<Location> {
        if at >= usize::from(self.count.load(Ordering::Acquire)) {
            return None;
        }
        let first = self.first.get().map_or(&[][..], |first| first);
        match first.get(at) {
            Some(member) => Some(*member),
            None => self.later.get()?.lock().get(at - first.len()).copied(),
        }
    }

    /// Adds members.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn add(&self, members: &[Location]) -> Result<()> {
        let is_first = self.is_empty();
        if is_first {
            let mut first = Vec::new();
            first.make_room(members.len())?;
            first.extend_from_slice(members);
            self.first.call_once(|| first.into_boxed_slice());
        } else {
            let empty = fallible::boxed(Spin::default())?;
            let mut later = self.later.call_once(|| empty).lock();
            later.make_room(members.len())?;
            later.extend_from_slice(members);
        }
        let more = members.len() as u16;
        self.count.fetch_add(more, Ordering::Release);
        Ok(())
    }
}
