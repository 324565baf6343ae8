//! One file that an epoll watches.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

use bitflags::bitflags;
use mach::sync::Spin;
use sync::poll::{Events, Observer, Sharing};

use super::Epoll;
use kernel::file::{FileRef, OpenFile};

bitflags! {
    /// When an entry reports; the bits are Linux's own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Trigger: u32 {
        /// Only one epoll of those that say so hears of a change.
        const EXCLUSIVE = 1 << 28;
        /// Keeps the system awake; no effect here.
        const WAKEUP = 1 << 29;
        /// Reports once, until modified.
        const ONESHOT = 1 << 30;
        /// Reports changes, not states.
        const EDGE = 1 << 31;
    }
}

/// What to watch for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The conditions.
    pub interest: Events,
    /// When to report them.
    pub trigger: Trigger,
    /// What the program gets back with the report.
    pub data: u64,
}

impl Watch {
    pub(super) fn is_exclusive(&self) -> bool {
        self.trigger.contains(Trigger::EXCLUSIVE)
    }

    /// With the conditions that are always watched for.
    fn armed(self) -> Self {
        Self {
            interest: self.interest | Events::ALWAYS,
            ..self
        }
    }
}

/// A report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Event {
    /// What is true.
    pub events: Events,
    /// The program's own value.
    pub data: u64,
}

/// A watched file.
pub(super) struct Entry {
    epoll: Weak<Epoll>,
    open: Weak<OpenFile>,
    state: Spin<State>,
    /// Whether it is on the ready list, or about to be put there.
    is_queued: AtomicBool,
    me: Weak<Entry>,
}

struct State {
    watch: Watch,
    /// Counts modifications: a report of an older watch does not silence a newer one.
    epoch: u32,
    is_removed: bool,
}

/// What an entry reports.
pub(super) struct Report {
    pub(super) event: Event,
    /// It reports again as long as this is true.
    pub(super) stays_queued: bool,
}

impl Entry {
    pub(super) fn new(epoll: Weak<Epoll>, open: &Arc<OpenFile>, watch: Watch) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            epoll,
            open: Arc::downgrade(open),
            state: Spin::new(State {
                watch: watch.armed(),
                epoch: 0,
                is_removed: false,
            }),
            is_queued: AtomicBool::new(false),
            me: me.clone(),
        })
    }

    fn interest(&self) -> Events {
        self.state.lock().watch.interest
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.state.lock().watch.is_exclusive()
    }

    /// Whether its open file still exists.
    pub(super) fn is_alive(&self) -> bool {
        self.open.strong_count() != 0
    }

    pub(super) fn open(&self) -> Weak<OpenFile> {
        self.open.clone()
    }

    fn observer(&self) -> Weak<dyn Observer> {
        self.me.clone()
    }

    /// Observes the file, and queues itself if that is ready already.
    pub(super) fn start(&self, file: &FileRef) {
        let watch = self.state.lock().watch;
        let sharing = if watch.is_exclusive() {
            Sharing::Exclusive
        } else {
            Sharing::Shared
        };
        if let Some(pollee) = file.pollee() {
            pollee.observe(self.observer(), watch.interest, sharing);
        }
        self.check(file);
    }

    pub(super) fn change(&self, file: &FileRef, watch: Watch) {
        let watch = watch.armed();
        {
            let mut state = self.state.lock();
            state.watch = watch;
            state.epoch = state.epoch.wrapping_add(1);
        }
        if let Some(pollee) = file.pollee() {
            pollee.change_interest(&self.observer(), watch.interest);
        }
        self.check(file);
    }

    fn check(&self, file: &FileRef) {
        let interest = self.interest();
        if file.poll_for(interest).intersects(interest)
            && let Some(me) = self.me.upgrade()
        {
            me.queue();
        }
    }

    /// Observes no longer, and reports nothing even if it is on the ready list.
    pub(super) fn stop(&self, file: &FileRef) {
        self.state.lock().is_removed = true;
        if let Some(pollee) = file.pollee() {
            pollee.forget(&self.observer());
        }
    }

    pub(super) fn stop_if_alive(&self) {
        if let Some(open) = self.open.upgrade() {
            self.stop(&open.file);
        }
    }

    fn queue(self: Arc<Self>) -> bool {
        if self.is_queued.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.epoll.upgrade().is_some_and(|epoll| epoll.queue(self))
    }

    /// Marks it as queued again; false if a change has queued it meanwhile.
    pub(super) fn requeue(&self) -> bool {
        !self.is_queued.swap(true, Ordering::SeqCst)
    }

    /// What to report, now that it is off the ready list; `None` if nothing is true. A
    /// one-shot entry falls silent.
    pub(super) fn report(&self) -> Option<Report> {
        let (watch, epoch, events) = self.look()?;
        let event = Event {
            events,
            data: watch.data,
        };
        let is_one_shot = watch.trigger.contains(Trigger::ONESHOT);
        if is_one_shot {
            self.silence(epoch);
        }
        let stays_queued = !is_one_shot && !watch.trigger.contains(Trigger::EDGE);
        Some(Report {
            event,
            stays_queued,
        })
    }

    /// Whether there is something to report; taken off the ready list as well.
    pub(super) fn is_ready(&self) -> bool {
        self.look().is_some()
    }

    /// The watch, its epoch, and what of it is true; `None` if nothing is.
    fn look(&self) -> Option<(Watch, u32, Events)> {
        self.is_queued.store(false, Ordering::SeqCst);
        let open = self.open.upgrade()?;
        let (watch, epoch) = {
            let state = self.state.lock();
            if state.is_removed || state.watch.interest.is_empty() {
                return None;
            }
            (state.watch, state.epoch)
        };
        let events = open.file.poll_for(watch.interest) & watch.interest;
        (!events.is_empty()).then_some((watch, epoch, events))
    }

    /// Ends the watch of that epoch; a newer one stays.
    fn silence(&self, epoch: u32) {
        let mut state = self.state.lock();
        if state.epoch == epoch {
            state.watch.interest = Events::empty();
        }
    }
}

impl Observer for Entry {
    fn notify(self: Arc<Self>, events: Events) -> bool {
        events.intersects(self.interest()) && self.queue()
    }
}
