//! A thread that submits: the queue of its requests that can go on.
//!
//! Invariant: the queue has room for all requests of the thread that exist, so a push needs no
//! memory and may come from an interrupt.
//!
//! While the thread is active (in a call on a ring) it looks at the queue itself, and a push only
//! wakes it. Otherwise a push sets `Flags::RING_WORK` and interrupts the thread, which ends its
//! wait as a signal does and comes by on its way to user mode.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use sched::{Entity, Flags, resched_point};
use sync::Result;
use task::{RingWork, Thread};

use crate::request::Request;
use crate::ring::Ring;

#[derive(Default)]
struct Queue {
    ready: VecDeque<Arc<Request>>,
    /// Requests that exist.
    count: usize,
    is_active: bool,
}

/// A thread as rings know it.
pub struct Submitter {
    entity: Arc<Entity>,
    queue: Spin<Queue>,
    /// The rings that it has submitted to.
    rings: Spin<Vec<Weak<Ring>>>,
    me: Weak<Submitter>,
}

impl Submitter {
    /// That of the thread, which gets one if it has none.
    ///
    /// Errors: `OutOfMemory`.
    pub fn of(thread: &Thread) -> Result<Arc<Self>> {
        let known = thread.ring_work.lock().clone();
        let known = known.and_then(|work| work.as_any().downcast_ref::<Self>()?.me.upgrade());
        if let Some(known) = known {
            return Ok(known);
        }
        fallible::room_for_arc::<Self>()?;
        let new = Arc::new_cyclic(|me| Self {
            entity: thread.sched.clone(),
            queue: Spin::default(),
            rings: Spin::default(),
            me: me.clone(),
        });
        *thread.ring_work.lock() = Some(new.clone());
        Ok(new)
    }

    /// Remembers that it submits to `ring`.
    ///
    /// Errors: `OutOfMemory`.
    pub fn note_ring(&self, ring: &Arc<Ring>) -> Result<()> {
        let mut rings = self.rings.lock();
        let address = Arc::as_ptr(ring);
        if rings.iter().any(|known| known.as_ptr() == address) {
            return Ok(());
        }
        rings.retain(|known| known.strong_count() != 0);
        rings.make_room(1)?;
        rings.push(Arc::downgrade(ring));
        Ok(())
    }

    /// Makes room for one more request.
    ///
    /// Errors: `OutOfMemory`.
    pub fn reserve(&self) -> Result<()> {
        let mut queue = self.queue.lock();
        let more = queue.count + 1 - queue.ready.len().min(queue.count);
        Ok(queue.ready.make_room(more)?)
    }

    /// There is one more request.
    pub fn adopt(&self) {
        self.queue.lock().count += 1;
    }

    /// There is one less.
    pub fn release(&self) {
        self.queue.lock().count -= 1;
    }

    /// `request` can go on.
    pub fn push(&self, request: Arc<Request>) {
        if request.is_queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let is_active = {
            let mut queue = self.queue.lock();
            queue.ready.push_back(request);
            queue.is_active
        };
        if is_active {
            sched::wake(&self.entity);
        } else {
            self.entity.set_flags(Flags::RING_WORK);
            sched::interrupt(&self.entity);
        }
    }

    /// Whether some request can go on.
    pub fn has_work(&self) -> bool {
        !self.queue.lock().ready.is_empty()
    }

    fn pop(&self) -> Option<Arc<Request>> {
        self.queue.lock().ready.pop_front()
    }

    /// Does what can be done now.
    pub fn work(&self, thread: &Thread) {
        while let Some(request) = self.pop() {
            request.is_queued.store(false, Ordering::SeqCst);
            request.advance(thread);
            resched_point();
        }
    }

    /// It looks at its queue itself, for as long as the answer lives.
    pub fn active<'a>(&'a self, thread: &'a Thread) -> Active<'a> {
        thread.clear_flags(Flags::RING_WORK);
        self.queue.lock().is_active = true;
        Active {
            submitter: self,
            thread,
        }
    }

    /// Whether it is this one.
    pub fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// A thread that looks at its queue itself.
pub struct Active<'a> {
    submitter: &'a Submitter,
    thread: &'a Thread,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        loop {
            self.submitter.work(self.thread);
            let mut queue = self.submitter.queue.lock();
            if queue.ready.is_empty() {
                queue.is_active = false;
                return;
            }
        }
    }
}

impl RingWork for Submitter {
    fn run(&self, thread: &Thread) {
        drop(self.active(thread));
    }

    fn cancel_all(&self, thread: &Thread) {
        let active = self.active(thread);
        let rings = core::mem::take(&mut *self.rings.lock());
        for ring in rings.iter().filter_map(Weak::upgrade) {
            ring.cancel_of(self);
            self.work(thread);
        }
        drop(active);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
