//! One contended lock.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::NoMemory;

use crate::Key;
use crate::host::{Host, Rank, Thread, room};

pub(super) struct Lock<H: Host> {
    pub(super) key: Key,
    pub(super) owner: Arc<H::Thread>,
    /// By rank, then as they came.
    waiters: Vec<(Rank<H>, Arc<H::Thread>)>,
    /// The word does not name the owner yet.
    pub(super) is_unwritten: bool,
}

impl<H: Host> Lock<H> {
    /// With room for one who waits.
    pub(super) fn new(key: Key, owner: Arc<H::Thread>) -> Result<Self, NoMemory> {
        let mut waiters = Vec::new();
        room::<H, _>(&mut waiters, 1)?;
        Ok(Self {
            key,
            owner,
            waiters,
            is_unwritten: false,
        })
    }

    pub(super) fn make_room(&mut self) -> Result<(), NoMemory> {
        room::<H, _>(&mut self.waiters, 1)
    }

    /// Whether nobody waits for it.
    pub(super) fn is_uncontended(&self) -> bool {
        self.waiters.is_empty()
    }

    /// The best rank of those who wait.
    pub(super) fn best(&self) -> Rank<H> {
        let first = self.waiters.first();
        first.map_or(H::Thread::FAIR, |(rank, _)| *rank)
    }

    /// Who gets it next.
    pub(super) fn next(&self) -> Option<&Arc<H::Thread>> {
        self.waiters.first().map(|(_, thread)| thread)
    }

    /// Puts one who waits, for whom there is room, behind those that go before it.
    pub(super) fn insert(&mut self, thread: Arc<H::Thread>) {
        let rank = thread.rank();
        let place = self.waiters.partition_point(|(before, _)| *before <= rank);
        self.waiters.insert(place, (rank, thread));
    }

    pub(super) fn remove(&mut self, thread: &H::Thread) -> Option<Arc<H::Thread>> {
        let mut waiters = self.waiters.iter();
        let place = waiters.position(|(_, one)| core::ptr::eq(&**one, thread))?;
        Some(self.waiters.remove(place).1)
    }

    /// The first of those who wait becomes the owner; `None` if nobody waits.
    pub(super) fn promote(&mut self) -> Option<Arc<H::Thread>> {
        if self.waiters.is_empty() {
            return None;
        }
        let (_, next) = self.waiters.remove(0);
        self.owner = next.clone();
        Some(next)
    }
}
