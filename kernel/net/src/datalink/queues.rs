//! The programs that have a link: none, one, or one for each of several queues.
//!
//! One owner is run as if there were no queues. With the second one a [`Shared`] stands in between: at the end
//! of a batch it says for each frame whose it is (`link::queues`), puts it into that queue's inbox, and runs
//! all owners. What queues send is looked at, too, for that is how flows are learned. It stays until the last
//! queue is closed.
//!
//! Lock order: what an owner locks; who steers ([`Shared`]); the link's inbox, a queue's. So owners are run, counted and
//! dropped with nothing locked.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use link::TxChain;
use link::counters::Kstat;
use link::queues::{QUEUES_MAX, Queues, Target};
use mach::mem::fallible;
use mach::sync::Spin;
use mbuf::RxFrame;
use sync::{Error, Result};

use super::inbox::Inbox;
use super::nic::Nic;
use super::owner::{FrameOwner, OwnedLink, take_as_on_wire};

/// A link's queues, or its only one; see the module.
#[derive(Default)]
pub(super) struct Owners {
    now: Spin<Owner>,
    /// What is sent is looked at.
    is_shared: AtomicBool,
}

/// Who takes a link's frames.
#[derive(Clone, Default)]
pub(super) enum Owner {
    /// Its network stack.
    #[default]
    Stack,
    /// A program, by this queue.
    Alone(u16, Arc<dyn FrameOwner>),
    /// Several, or one that takes no new flows.
    Shared(Arc<Shared>),
}

/// What an owner's leaving means for the link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It did not have the link any more.
    Nothing,
    /// Others have it.
    Others,
    /// Its frames are the stack's again.
    Nobody,
}

impl Owners {
    /// Who has it now.
    pub fn now(&self) -> Owner {
        self.now.lock().clone()
    }

    /// Whether a program has it.
    pub fn is_owned(&self) -> bool {
        !matches!(*self.now.lock(), Owner::Stack)
    }

    /// Gives a queue to an owner. Not to be called by two at once.
    ///
    /// Errors: `Busy` if the queue has one, `OutOfMemory`.
    pub fn add(&self, queue: u16, new: Arc<dyn FrameOwner>) -> Result<()> {
        match self.now() {
            Owner::Stack => *self.now.lock() = Owner::Alone(queue, new),
            Owner::Alone(other, _) if other == queue => return Err(Error::Busy),
            Owner::Alone(other, old) => self.share(other, old)?.join(queue, new)?,
            Owner::Shared(shared) => shared.join(queue, new)?,
        }
        Ok(())
    }

    /// The only owner's link is shared from now on.
    fn share(&self, queue: u16, only: Arc<dyn FrameOwner>) -> Result<Arc<Shared>> {
        let shared = fallible::arc(Shared::new()?)?;
        shared.join(queue, only.clone())?;
        let mut now = self.now.lock();
        match &*now {
            Owner::Alone(_, still) if Arc::ptr_eq(still, &only) => {}
            _ => return Err(Error::Busy),
        }
        *now = Owner::Shared(shared.clone());
        self.is_shared.store(true, Relaxed);
        Ok(shared)
    }

    /// Takes a queue from an owner, if it still has it.
    pub fn remove(&self, queue: u16, old: &Arc<dyn FrameOwner>) -> Left {
        let mut now = self.now.lock();
        let left = match &*now {
            Owner::Stack => Left::Nothing,
            Owner::Alone(_, owner) if Arc::ptr_eq(owner, old) => Left::Nobody,
            Owner::Alone(..) => Left::Nothing,
            Owner::Shared(shared) => shared.leave(queue, old),
        };
        let gone = match left {
            Left::Nobody => self.take_locked(&mut now),
            _ => Owner::Stack,
        };
        drop(now);
        drop(gone);
        left
    }

    /// Takes the link from all.
    pub fn take(&self) -> Owner {
        self.take_locked(&mut self.now.lock())
    }

    fn take_locked(&self, now: &mut Owner) -> Owner {
        self.is_shared.store(false, Relaxed);
        core::mem::take(now)
    }

    /// Whether a queue gets new flows from now on. Not to be called by two at once.
    ///
    /// Errors: `NetworkDown` if the link is another's, `OutOfMemory`.
    pub fn take_new_flows(&self, queue: u16, is_taker: bool) -> Result<()> {
        match self.now() {
            Owner::Stack => return Err(Error::NetworkDown),
            Owner::Alone(..) if is_taker => {}
            Owner::Alone(_, only) => self.share(queue, only)?.take_new_flows(queue, false),
            Owner::Shared(shared) => shared.take_new_flows(queue, is_taker),
        }
        Ok(())
    }

    /// A queue sends these frames.
    #[inline]
    pub fn learn(&self, queue: u16, frames: &TxChain) {
        if self.is_shared.load(Relaxed)
            && let Owner::Shared(shared) = self.now()
        {
            shared.learn(queue, frames);
        }
    }

    /// What each queue's owner has counted, and what was steered to it.
    pub fn counts(&self) -> Vec<(u16, Vec<Kstat>)> {
        match self.now() {
            Owner::Stack => Vec::new(),
            Owner::Alone(queue, owner) => Vec::from([(queue, owner.counts())]),
            Owner::Shared(shared) => shared.counts(),
        }
    }
}

impl Owner {
    /// They lose the link.
    pub fn link_gone(&self) {
        match self {
            Self::Stack => {}
            Self::Alone(_, owner) => owner.link_gone(),
            Self::Shared(shared) => shared.queues().for_each(|queue| queue.owner.link_gone()),
        }
    }
}

/// A queue of several.
struct Queue {
    number: u16,
    owner: Arc<dyn FrameOwner>,
    inbox: Arc<Inbox>,
}

/// See the module.
pub(super) struct Shared(Spin<Sorting>);

struct Sorting {
    steering: Queues,
    queues: [Option<Arc<Queue>>; QUEUES_MAX as usize],
}

impl Shared {
    fn new() -> Result<Self> {
        let key = [random::next_u64(), random::next_u64()];
        Ok(Self(Spin::new(Sorting {
            steering: Queues::new(key).map_err(|_| Error::OutOfMemory)?,
            queues: Default::default(),
        })))
    }

    /// Errors: `Busy` if the queue has an owner, `Invalid` for one that cannot be, `OutOfMemory`.
    fn join(&self, number: u16, owner: Arc<dyn FrameOwner>) -> Result<()> {
        let queue = fallible::arc(Queue {
            number,
            owner,
            inbox: fallible::arc(Inbox::default())?,
        })?;
        let Sorting { steering, queues } = &mut *self.0.lock();
        match queues.get_mut(usize::from(number)) {
            None => Err(Error::Invalid),
            Some(Some(_)) => Err(Error::Busy),
            Some(place) => {
                *place = Some(queue);
                steering.join(number);
                Ok(())
            }
        }
    }

    fn leave(&self, number: u16, old: &Arc<dyn FrameOwner>) -> Left {
        let mut sorting = self.0.lock();
        let Sorting { steering, queues } = &mut *sorting;
        let place = queues.get_mut(usize::from(number));
        let gone = place.and_then(|place| place.take_if(|it| Arc::ptr_eq(&it.owner, old)));
        if gone.is_none() {
            return Left::Nothing;
        }
        steering.leave(number);
        let is_empty = queues.iter().all(Option::is_none);
        drop(sorting);
        drop(gone);
        match is_empty {
            true => Left::Nobody,
            false => Left::Others,
        }
    }

    fn take_new_flows(&self, queue: u16, is_taker: bool) {
        self.0.lock().steering.take_new_flows(queue, is_taker);
    }

    fn learn(&self, queue: u16, frames: &TxChain) {
        let now = mach::time::now();
        let steering = &mut self.0.lock().steering;
        frames
            .iter()
            .for_each(|frame| steering.send(queue, &frame.chain, now));
    }

    /// The queues, each of them looked up when it is asked for.
    fn queues(&self) -> impl Iterator<Item = Arc<Queue>> + '_ {
        let at = |place: usize| self.0.lock().queues.get(place).cloned().flatten();
        (0..usize::from(QUEUES_MAX)).filter_map(at)
    }

    /// Gives a batch of the link's frames to its queues, and runs them; true if there is more to do.
    pub fn run(&self, nic: &Arc<Nic>) -> bool {
        self.sort(&nic.inbox);
        let mut has_more = nic.inbox.len() != 0;
        for queue in self.queues() {
            let link = OwnedLink::part(nic.clone(), queue.number, queue.inbox.clone());
            has_more |= queue.owner.run(&link) || queue.inbox.len() != 0;
        }
        has_more
    }

    fn sort(&self, from: &Inbox) {
        let Sorting { steering, queues } = &mut *self.0.lock();
        let now = mach::time::now();
        take_as_on_wire(from, &mut |frame| {
            match steering.receive(&frame.chain, now) {
                Target::Queue(number) => {
                    let queue = queues.get(usize::from(number)).and_then(Option::as_ref);
                    if let Some(queue) = queue {
                        queue.inbox.put_one(frame);
                    }
                }
                Target::All => {
                    let all = queues.iter().flatten();
                    all.for_each(|queue| queue.inbox.put_one(copy_of(&frame)));
                }
                // It is counted.
                Target::Nobody => {}
            }
        });
    }

    fn counts(&self) -> Vec<(u16, Vec<Kstat>)> {
        let counts_of = |(place, queue): (usize, Arc<Queue>)| {
            // An owner counts under its own lock, which comes before ours.
            let mut counts = queue.owner.counts();
            counts.push(("overflowed", queue.inbox.dropped()));
            let steering = &self.0.lock().steering;
            counts.extend(
                steering
                    .counts(queue.number)
                    .into_iter()
                    .flat_map(|all| all.iter()),
            );
            if place == 0 {
                counts.push(("syn_unwanted", steering.unwanted()));
                counts.push(("flow_unlearned", steering.unlearned()));
            }
            (queue.number, counts)
        };
        self.queues().enumerate().map(counts_of).collect()
    }
}

/// The same bytes: an owner needs nothing else.
fn copy_of(frame: &RxFrame) -> RxFrame {
    RxFrame {
        chain: frame.chain.clone(),
        ..RxFrame::default()
    }
}
