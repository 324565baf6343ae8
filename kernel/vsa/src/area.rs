//! An area that may be in use: its map, who is inside, and the fence that keeps others out while blocks are given back.
//!
//! A file that is open has entered once and knows the number of revocations of then; each use of a map counts as being
//! inside. The order is what makes it safe: a use counts first and looks at the fence then, under the state's lock; who gives
//! blocks back raises the fence first and waits then until nobody is inside (**Inside**).
//!
//! A ring ends before its requests do, since the disk cannot be told to forget them: whoever was killed leaves writes that come
//! yet. The next ring waits for the last of them, so nothing is written under it but by itself (**AtDisk**).

use alloc::sync::{Arc, Weak};

use kernel_block::Store;
use mach::sync::Spin;
use sync::{Error, Result, Wait, WaitQueue};
use vsa::{AreaId, Map, Name, Uid};

/// What an area takes away: its ring.
pub trait Revocable: Send + Sync {
    /// What is submitted from now on is refused.
    fn revoke(&self);

    /// The area was taken away for good.
    fn hang_up(&self);
}

/// See the module.
pub struct Area {
    /// Where it lies.
    pub store: Store,
    /// Its number in the store's catalogue.
    pub id: AreaId,
    /// What it is called.
    pub name: Name,
    /// Whose it is.
    pub owner: Uid,
    /// Of its node.
    pub minor: u32,
    state: Spin<State>,
    /// Threads that wait for the fence, for the last to leave, or for what an ended ring has left.
    changed: WaitQueue,
}

struct State {
    map: Arc<Map>,
    inside: usize,
    /// Requests of rings, also of one that has ended; they are inside, too.
    at_disk: usize,
    is_fenced: bool,
    is_deleted: bool,
    revocations: u64,
    /// The one ring, if a file has set one up.
    ring: Option<Weak<dyn Revocable>>,
    has_ring: bool,
    files: usize,
}

/// How a file has an area: until this many revocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease(u64);

impl Area {
    /// As the catalogue has it.
    pub fn new(store: Store, area: &vsa::Area, map: Map, minor: u32) -> Self {
        Self {
            store,
            id: area.id(),
            name: *area.name(),
            owner: area.owner(),
            minor,
            state: Spin::new(State {
                map: Arc::new(map),
                inside: 0,
                at_disk: 0,
                is_fenced: false,
                is_deleted: false,
                revocations: 0,
                ring: None,
                has_ring: false,
                files: 0,
            }),
            changed: WaitQueue::new(),
        }
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        self.store.sector_bytes()
    }

    /// A file begins.
    ///
    /// Errors: `NoSuchDevice` if it was deleted.
    pub fn open(&self) -> Result<Lease> {
        let mut state = self.state.lock();
        if state.is_deleted {
            return Err(Error::NoSuchDevice);
        }
        state.files += 1;
        Ok(Lease(state.revocations))
    }

    /// A file ends, and its ring with it, if it had one.
    pub fn close(&self, lease: Lease, had_ring: bool) {
        let mut state = self.state.lock();
        state.files -= 1;
        if had_ring && state.revocations == lease.0 {
            (state.ring, state.has_ring) = (None, false);
        }
    }

    /// Whether a file has it, or a request is under way.
    pub fn is_in_use(&self) -> bool {
        let state = self.state.lock();
        state.files != 0 || state.inside != 0
    }

    /// Takes the place of its only ring, once the disk has nothing of the one before.
    ///
    /// Errors: `Busy`, `WrongDevice` if it was revoked, `Interrupted`.
    pub fn take_ring(&self, lease: Lease) -> Result<()> {
        let take = || {
            let mut state = self.state.lock();
            if let Err(error) = state.check(lease) {
                return Some(Err(error));
            }
            if state.has_ring {
                return Some(Err(Error::Busy));
            }
            state.has_ring = state.at_disk == 0;
            state.has_ring.then_some(Ok(()))
        };
        self.changed.wait(Wait::INTERRUPTIBLE, take)?
    }

    /// The ring is there, by who is inside, or could not be made.
    pub fn set_ring(&self, lease: Lease, ring: Option<Weak<dyn Revocable>>) {
        let mut state = self.state.lock();
        if state.revocations == lease.0 {
            state.has_ring = ring.is_some();
        }
        state.ring = ring;
    }

    /// Uses the map until what is returned is dropped; waits while a fence stands.
    ///
    /// Errors: `WrongDevice` if it was taken away, `Interrupted`.
    pub fn enter(&self, lease: Lease) -> Result<Inside<'_>> {
        let enter = || {
            let mut state = self.state.lock();
            if let Err(error) = state.check(lease) {
                return Some(Err(error));
            }
            if state.is_fenced {
                return None;
            }
            state.inside += 1;
            let map = state.map.clone();
            Some(Ok(Inside { area: self, map }))
        };
        self.changed.wait(Wait::INTERRUPTIBLE, enter)?
    }

    /// Requests of the ring begin: they count as being inside.
    #[inline]
    pub fn count_in(&self, requests: usize) {
        let mut state = self.state.lock();
        state.inside += requests;
        state.at_disk += requests;
    }

    /// So many have ended.
    #[inline]
    pub fn count_out(&self, requests: usize) {
        let is_awaited = {
            let mut state = self.state.lock();
            state.at_disk -= requests;
            let is_at_rest = state.at_disk == 0 && !state.has_ring;
            state.leave(requests) || is_at_rest
        };
        if is_awaited {
            self.changed.wake_all();
        }
    }

    /// Keeps all out, takes the ring's map, and waits until nobody is inside.
    pub fn raise_fence(&self) {
        self.state.lock().is_fenced = true;
        self.empty();
        // Who was inside may have given the ring a map; nobody is any more who could.
        self.empty();
    }

    fn empty(&self) {
        let ring = self.state.lock().ring.as_ref().and_then(Weak::upgrade);
        if let Some(ring) = ring {
            ring.revoke();
        }
        let is_empty = || (self.state.lock().inside == 0).then_some(());
        // Devices end what they have, or are stopped.
        let _ = self.changed.wait(Wait::UNINTERRUPTIBLE, is_empty);
    }

    /// Lets others in again.
    pub fn lower_fence(&self) {
        self.state.lock().is_fenced = false;
        self.changed.wake_all();
    }

    /// It has another size. The ring goes on with its old map until it is renewed.
    pub fn set_map(&self, map: Map) {
        self.state.lock().map = Arc::new(map);
    }

    /// Takes it from all who have it, for good, once what they began has ended.
    pub fn revoke(&self, is_deleted: bool) {
        {
            let mut state = self.state.lock();
            state.revocations += 1;
            state.is_deleted |= is_deleted;
        }
        self.raise_fence();
        let ring = {
            let mut state = self.state.lock();
            state.has_ring = false;
            state.ring.take().and_then(|ring| ring.upgrade())
        };
        self.lower_fence();
        if let Some(ring) = ring {
            ring.hang_up();
        }
    }
}

impl State {
    fn check(&self, lease: Lease) -> Result<()> {
        match self.revocations == lease.0 && !self.is_deleted {
            true => Ok(()),
            false => Err(Error::WrongDevice),
        }
    }

    /// Whether a fence waits for nobody else, now that so many have left.
    fn leave(&mut self, count: usize) -> bool {
        self.inside -= count;
        self.is_fenced && self.inside == 0
    }
}

/// Someone is inside.
pub struct Inside<'a> {
    area: &'a Area,
    /// The map of then, of blocks that stay the area's.
    pub map: Arc<Map>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let is_awaited = self.area.state.lock().leave(1);
        if is_awaited {
            self.area.changed.wake_all();
        }
    }
}
