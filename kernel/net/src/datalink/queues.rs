//! The programs that have a link: none, one, or one for each of several queues.
//!
//! One owner is run as if there were no queues. With the second one, or the first that has a filter (`filters`), a
//! [`Shared`] stands in between: at the end
//! of a batch it says for each frame whose it is (`link::queues`), puts it into that queue's inbox, and runs
//! all owners. What queues send is looked at, too, for that is how flows are learned. It stays until the last
//! queue is closed, and longer if something is the stack's then. While all queues have filters it leaves to the link's stack what
//! none of them admits, and always what was given to it (`link::queues`, `stack`).
//!
//! Lock order: what an owner locks; who steers ([`Shared`]); the link's inbox, a queue's. So owners are run, counted and
//! dropped with nothing locked.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use link::TxChain;
use link::counters::Kstat;
use link::filters::Predicate;
use link::queues::{Ends, NotMoved, QUEUES_MAX, Queues, STACK, Steered, Target, begins_or_ends};
use mach::mem::fallible;
use mach::sync::Spin;
use mbuf::{Chain, RxFrame};
use sync::{Error, Result};

use super::inbox::{FRAMES_MAX, Inbox};
use super::nic::Nic;
use super::owner::{Doorbell, FrameOwner, OwnedLink, as_on_wire};
use crate::device::poll::BATCH_FRAMES_MAX;

/// An inbox is empty after so many batches, unless more has come.
const INBOX_BATCHES: usize = FRAMES_MAX.div_ceil(BATCH_FRAMES_MAX);

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
pub(super) enum Departure {
    /// It did not have the link any more.
    NotAnOwner,
    /// Others have it.
    OthersRemain,
    /// Its frames are the stack's again.
    Last,
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

    /// Whether somebody decides frame by frame whose it is.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Relaxed)
    }

    /// Whether an owner takes frames whatever they are.
    pub fn takes_all(&self) -> bool {
        match self.now() {
            Owner::Stack => false,
            Owner::Alone(..) => true,
            Owner::Shared(shared) => !shared.are_all_filtered(),
        }
    }

    /// Gives a queue to an owner. Not to be called by two at once.
    ///
    /// Errors: `Busy` if the queue has one, `Invalid` for one that cannot be, `OutOfMemory`.
    pub fn add(&self, queue: u16, new: Arc<dyn FrameOwner>, gets: Gets) -> Result<()> {
        if queue >= QUEUES_MAX {
            return Err(Error::Invalid);
        }
        match self.now() {
            Owner::Stack if gets == Gets::Everything => *self.now.lock() = Owner::Alone(queue, new),
            Owner::Stack => {
                let shared = fallible::arc(Shared::new()?)?;
                shared.join(queue, new, gets)?;
                self.is_shared.store(true, Relaxed);
                *self.now.lock() = Owner::Shared(shared);
            }
            Owner::Alone(other, _) if other == queue => return Err(Error::Busy),
            Owner::Alone(other, old) => self.share(other, old)?.join(queue, new, gets)?,
            Owner::Shared(shared) => shared.join(queue, new, gets)?,
        }
        Ok(())
    }

    /// A queue gets from now on what a filter admits. Not to be called by two at once.
    ///
    /// Errors: `NetworkDown` if it is not this owner's any more, `OutOfMemory`.
    pub fn narrow(&self, queue: u16, owner: &Arc<dyn FrameOwner>, filter: Admits) -> Result<()> {
        match self.now() {
            Owner::Alone(_, only) if Arc::ptr_eq(&only, owner) => {
                self.share(queue, only)?.narrow(queue, owner, filter)
            }
            Owner::Stack | Owner::Alone(..) => Err(Error::NetworkDown),
            Owner::Shared(shared) => shared.narrow(queue, owner, filter),
        }
    }

    /// The queue that somebody has by a filter.
    pub fn of_filter(&self, id: u32) -> Option<(u16, Arc<dyn FrameOwner>)> {
        match self.now() {
            Owner::Stack | Owner::Alone(..) => None,
            Owner::Shared(shared) => {
                let found = shared.queues().find(|queue| queue.filter == Some(id));
                found.map(|queue| (queue.number, queue.owner.clone()))
            }
        }
    }

    /// Frames that a queue got because its filter admits them.
    pub fn hits(&self, queue: u16) -> u64 {
        match self.now() {
            Owner::Stack | Owner::Alone(..) => 0,
            Owner::Shared(shared) => shared.hits(queue),
        }
    }

    /// Each queue's doorbell.
    pub fn doorbells(&self) -> Vec<(u16, Doorbell)> {
        match self.now() {
            Owner::Stack => Vec::new(),
            Owner::Alone(queue, owner) => Vec::from([(queue, owner.doorbell())]),
            Owner::Shared(shared) => {
                let of = |queue: Arc<Queue>| (queue.number, queue.owner.doorbell());
                shared.queues().map(of).collect()
            }
        }
    }

    /// The only owner's link is shared from now on.
    fn share(&self, queue: u16, only: Arc<dyn FrameOwner>) -> Result<Arc<Shared>> {
        let shared = fallible::arc(Shared::new()?)?;
        shared.join(queue, only.clone(), Gets::Everything)?;
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
    pub fn remove(&self, queue: u16, old: &Arc<dyn FrameOwner>) -> Departure {
        let mut now = self.now.lock();
        let left = match &*now {
            Owner::Stack => Departure::NotAnOwner,
            Owner::Alone(_, owner) if Arc::ptr_eq(owner, old) => Departure::Last,
            Owner::Alone(..) => Departure::NotAnOwner,
            Owner::Shared(shared) => shared.leave(queue, old),
        };
        let gone = match left {
            Departure::Last => self.take_locked(&mut now),
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
    pub fn take_new_flows(
        &self,
        queue: u16,
        owner: &Arc<dyn FrameOwner>,
        is_taker: bool,
    ) -> Result<()> {
        match self.now() {
            Owner::Alone(_, only) if Arc::ptr_eq(&only, owner) => match is_taker {
                true => Ok(()),
                false => self.share(queue, only)?.take_new_flows(queue, owner, false),
            },
            Owner::Stack | Owner::Alone(..) => Err(Error::NetworkDown),
            Owner::Shared(shared) => shared.take_new_flows(queue, owner, is_taker),
        }
    }

    /// Gives a flow, or a port, to another queue or to the stack, by who has a queue without a filter. Frames of it that
    /// have come are in its rings when this returns, and no more come.
    ///
    /// Errors: `NetworkDown` if the link is another's, `NotPermitted` by a filter, `WrongDevice` without such a queue,
    /// `NoBuffers` without a place for it.
    pub fn redirect(
        &self,
        nic: &Arc<Nic>,
        (queue, owner): (u16, &Arc<dyn FrameOwner>),
        what: Redirected,
        to: u16,
    ) -> Result<()> {
        match self.now() {
            Owner::Shared(shared) => shared.redirect(nic, owner, what, to),
            Owner::Alone(_, only) if Arc::ptr_eq(&only, owner) => match to {
                STACK => self.share(queue, only)?.redirect(nic, owner, what, to),
                // It has all.
                own if own == queue => Ok(()),
                _ => Err(Error::WrongDevice),
            },
            Owner::Stack | Owner::Alone(..) => Err(Error::NetworkDown),
        }
    }

    /// The stack sends a frame.
    #[inline]
    pub fn learn_of_stack(&self, frame: &Chain) {
        if self.is_shared.load(Relaxed)
            && begins_or_ends(frame)
            && let Owner::Shared(shared) = self.now()
        {
            let now = mach::time::now();
            shared.0.lock().steering.send(STACK, frame, now);
        }
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

/// What goes to another queue, or to the stack.
#[derive(Clone, Copy, Debug)]
pub enum Redirected {
    /// What a peer sends to an end of ours.
    Flow(Ends),
    /// By a protocol's number and a port of ours: what comes there of flows that nobody has.
    Port(u8, u16),
}

/// A filter's number, and what its queue receives.
pub(super) type Admits = (u32, Predicate);

/// What a queue gets that has just come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gets {
    /// Also flows that no queue has.
    Everything,
    /// Not these.
    NoNewFlows,
    /// What a filter admits.
    Admitted(Admits),
}

/// A queue of several.
struct Queue {
    number: u16,
    owner: Arc<dyn FrameOwner>,
    inbox: Arc<Inbox>,
    /// The filter by which its owner has it.
    filter: Option<u32>,
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
    fn join(&self, number: u16, owner: Arc<dyn FrameOwner>, gets: Gets) -> Result<()> {
        let filter = match gets {
            Gets::Admitted((id, _)) => Some(id),
            _ => None,
        };
        let queue = fallible::arc(Queue {
            number,
            owner,
            inbox: fallible::arc(Inbox::default())?,
            filter,
        })?;
        let Sorting { steering, queues } = &mut *self.0.lock();
        match queues.get_mut(usize::from(number)) {
            None => Err(Error::Invalid),
            Some(Some(_)) => Err(Error::Busy),
            Some(place) => {
                *place = Some(queue);
                match gets {
                    Gets::Everything => steering.join(number, true),
                    Gets::NoNewFlows => steering.join(number, false),
                    Gets::Admitted((_, receives)) => steering.join_filtered(number, receives),
                }
                Ok(())
            }
        }
    }

    /// Errors: `NetworkDown` if the queue is not this owner's, `OutOfMemory`.
    fn narrow(
        &self,
        number: u16,
        owner: &Arc<dyn FrameOwner>,
        (id, receives): Admits,
    ) -> Result<()> {
        let is_it = |queue: &Arc<Queue>| Arc::ptr_eq(&queue.owner, owner);
        let old = self.queues().find(is_it).ok_or(Error::NetworkDown)?;
        let new = fallible::arc(Queue {
            number,
            owner: old.owner.clone(),
            inbox: old.inbox.clone(),
            filter: Some(id),
        })?;
        let mut sorting = self.0.lock();
        let Sorting { steering, queues } = &mut *sorting;
        let place = queues.get_mut(usize::from(number));
        // Its owner may have left a moment ago.
        let place = place.and_then(|place| place.as_mut().filter(|now| Arc::ptr_eq(now, &old)));
        *place.ok_or(Error::NetworkDown)? = new;
        steering.leave(number);
        steering.join_filtered(number, receives);
        Ok(())
    }

    fn are_all_filtered(&self) -> bool {
        self.0.lock().steering.are_all_filtered()
    }

    fn hits(&self, queue: u16) -> u64 {
        let sorting = self.0.lock();
        let counts = sorting.steering.counts(queue);
        counts.map_or(0, |counts| counts.get(Steered::Filter))
    }

    fn leave(&self, number: u16, old: &Arc<dyn FrameOwner>) -> Departure {
        let mut sorting = self.0.lock();
        let Sorting { steering, queues } = &mut *sorting;
        let place = queues.get_mut(usize::from(number));
        let gone = place.and_then(|place| place.take_if(|it| Arc::ptr_eq(&it.owner, old)));
        if gone.is_none() {
            return Departure::NotAnOwner;
        }
        steering.leave(number);
        let is_empty = queues.iter().all(Option::is_none) && !steering.is_stacks_in_part();
        drop(sorting);
        drop(gone);
        match is_empty {
            true => Departure::Last,
            false => Departure::OthersRemain,
        }
    }

    /// Errors: `NetworkDown` if the queue is not this owner's.
    fn take_new_flows(
        &self,
        number: u16,
        owner: &Arc<dyn FrameOwner>,
        is_taker: bool,
    ) -> Result<()> {
        let Sorting { steering, queues } = &mut *self.0.lock();
        let queue = queues.get(usize::from(number)).and_then(Option::as_ref);
        match queue.is_some_and(|queue| Arc::ptr_eq(&queue.owner, owner)) {
            true => steering.take_new_flows(number, is_taker),
            false => return Err(Error::NetworkDown),
        }
        Ok(())
    }

    fn redirect(
        &self,
        nic: &Arc<Nic>,
        owner: &Arc<dyn FrameOwner>,
        what: Redirected,
        to: u16,
    ) -> Result<()> {
        let is_it = |queue: &Arc<Queue>| Arc::ptr_eq(&queue.owner, owner);
        let queue = self.queues().find(is_it).ok_or(Error::NetworkDown)?;
        if queue.filter.is_some() {
            return Err(Error::NotPermitted);
        }
        let moved = {
            let now = mach::time::now();
            let steering = &mut self.0.lock().steering;
            match what {
                Redirected::Flow(ends) => steering.move_flow(ends, to, now),
                Redirected::Port(protocol, port) => steering.move_port((protocol, port), to),
            }
        };
        moved.map_err(|why| match why {
            NotMoved::NoSuchQueue => Error::WrongDevice,
            NotMoved::NoRoom => Error::NoBuffers,
        })?;
        let link = OwnedLink::part(nic.clone(), queue.number, queue.inbox.clone());
        // The inbox is as long as this at most, and may be filled again meanwhile.
        for _ in 0..INBOX_BATCHES {
            queue.owner.run(&link);
            if queue.inbox.len() == 0 {
                break;
            }
        }
        Ok(())
    }

    /// What only goes on is none of our business: queues that send on several CPUs do not wait for each other.
    fn learn(&self, queue: u16, frames: &TxChain) {
        let chains = frames.iter().map(|frame| &frame.chain);
        let mut telling = chains.filter(|frame| begins_or_ends(frame)).peekable();
        if telling.peek().is_none() {
            return;
        }
        let now = mach::time::now();
        let steering = &mut self.0.lock().steering;
        telling.for_each(|frame| steering.send(queue, frame, now));
    }

    /// The queues, each of them looked up when it is asked for.
    fn queues(&self) -> impl Iterator<Item = Arc<Queue>> + '_ {
        let at = |place: usize| self.0.lock().queues.get(place).cloned().flatten();
        (0..usize::from(QUEUES_MAX)).filter_map(at)
    }

    /// Gives a batch of the link's frames to its queues, and runs them; true if there is more to do.
    pub fn run(&self, nic: &Arc<Nic>) -> bool {
        self.sort(nic);
        let mut has_more = nic.inbox.len() != 0;
        for queue in self.queues() {
            let link = OwnedLink::part(nic.clone(), queue.number, queue.inbox.clone());
            has_more |= queue.owner.run(&link) || queue.inbox.len() != 0;
        }
        has_more
    }

    /// What is the stack's is left to it as it is.
    fn sort(&self, nic: &Nic) {
        let (from, left) = (&nic.inbox, &nic.left);
        let onlooker = nic.onlooker();
        let Sorting { steering, queues } = &mut *self.0.lock();
        let now = mach::time::now();
        let mut lost = 0;
        from.drain(BATCH_FRAMES_MAX, &mut |frame| {
            let target = steering.receive(&frame.chain, now);
            if let Some(onlooker) = onlooker.as_ref().filter(|_| !is_stacks(&target)) {
                onlooker.received(&frame);
            }
            let mut give = |frame: RxFrame| match target {
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
                Target::Copies(to) => {
                    let all = queues.iter().flatten();
                    all.filter(|queue| to.has(queue.number))
                        .for_each(|queue| queue.inbox.put_one(copy_of(&frame)));
                    if to.with_stack {
                        left.put_one(copy_of(&frame));
                    }
                }
                // Nobody's is counted, and the stack's stays as it is.
                Target::Stack | Target::Nobody => {}
            };
            match target {
                Target::Stack => left.put_one(frame),
                _ => lost += u64::from(!as_on_wire(frame, &mut give)),
            }
        });
        from.count_dropped(lost);
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

/// Whether the stack gets it, alone or among others.
fn is_stacks(target: &Target) -> bool {
    match target {
        Target::Stack => true,
        Target::Copies(to) => to.with_stack,
        Target::Queue(_) | Target::All | Target::Nobody => false,
    }
}

/// The same bytes: an owner needs nothing else.
fn copy_of(frame: &RxFrame) -> RxFrame {
    RxFrame {
        chain: frame.chain.clone(),
        ..RxFrame::default()
    }
}
