//! One file that a set watches.

use alloc::sync::{Arc, Weak};

use base::lock::{Family, Flag, Lock};

use crate::host::{Host, Open};
use crate::{Event, Events, Observer, Set, Sharing, Watch};

/// A watched file.
pub struct Entry<H: Host> {
    set: Weak<Set<H>>,
    open: Weak<H::Open>,
    state: <H::Family as Family>::Lock<State>,
    /// Whether it is on the ready list, or about to be put there.
    is_queued: <H::Family as Family>::Flag,
}

struct State {
    watch: Watch,
    /// Counts modifications: a report of an older watch does not silence a newer one.
    epoch: u32,
    is_removed: bool,
}

/// What an entry reports.
pub(crate) struct Report {
    pub(crate) event: Event,
    watch: Watch,
    epoch: u32,
}

impl Report {
    /// Whether it reports again as long as this is true.
    pub(crate) fn stays_queued(&self) -> bool {
        self.watch.is_level_triggered()
    }
}

impl<H: Host> Entry<H> {
    pub(crate) fn new(set: Weak<Set<H>>, open: &Arc<H::Open>, watch: Watch) -> Arc<Self> {
        Arc::new(Self {
            set,
            open: Arc::downgrade(open),
            state: Lock::new(State {
                watch,
                epoch: 0,
                is_removed: false,
            }),
            is_queued: Default::default(),
        })
    }

    /// What it watches for; nothing, if it was a one-shot and has reported.
    pub(crate) fn watch(&self) -> Watch {
        self.state.lock().watch
    }

    fn interest(&self) -> Events {
        self.state.lock().watch.interest
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.state.lock().watch.is_exclusive()
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.state.lock().is_removed
    }

    /// Whether its open file still exists, and is watched.
    pub(crate) fn is_alive(&self) -> bool {
        self.open.strong_count() != 0 && !self.is_removed()
    }

    pub(crate) fn open(&self) -> Weak<H::Open> {
        self.open.clone()
    }

    /// Observes the file, and queues itself if that is ready already.
    pub(crate) fn start(self: &Arc<Self>, open: &H::Open) {
        let watch = self.state.lock().watch;
        let sharing = match watch.is_exclusive() {
            true => Sharing::Exclusive,
            false => Sharing::Shared,
        };
        open.observe(Arc::downgrade(self), watch.interest, sharing);
        self.check(open);
    }

    pub(crate) fn change(self: &Arc<Self>, open: &H::Open, watch: Watch) {
        let watch = watch.armed();
        {
            let mut state = self.state.lock();
            state.watch = watch;
            state.epoch = state.epoch.wrapping_add(1);
        }
        open.change_interest(Arc::downgrade(self), watch.interest);
        self.check(open);
    }

    #[inline]
    fn check(self: &Arc<Self>, open: &H::Open) {
        let interest = self.interest();
        if open.poll(interest).intersects(interest) {
            self.queue();
        }
    }

    /// Observes no longer, and reports nothing even if it is on the ready list.
    pub(crate) fn stop(self: &Arc<Self>, open: &H::Open) {
        self.state.lock().is_removed = true;
        open.forget(Arc::downgrade(self));
    }

    /// Its file stays open for somebody else, and observes it no longer: nobody here has a number of it. It reports nothing, as
    /// if the file was gone.
    pub fn retire(&self) {
        self.state.lock().is_removed = true;
    }

    pub(crate) fn stop_if_alive(self: &Arc<Self>) {
        if let Some(open) = self.open.upgrade() {
            self.stop(&open);
        }
    }

    /// `events` may have become true of its file; whether a thread will act on it. Called with the
    /// notifier's locks held.
    pub fn notify(self: &Arc<Self>, events: Events) -> bool {
        events.intersects(self.interest()) && self.queue()
    }

    #[inline]
    fn queue(self: &Arc<Self>) -> bool {
        self.mark()
            && self
                .set
                .upgrade()
                .is_some_and(|set| set.queue(self.clone()))
    }

    /// Marks it as queued; false if it is already.
    pub(crate) fn mark(&self) -> bool {
        !self.is_queued.swap(true)
    }

    /// What to report, now that it is off the ready list; `None` if nothing is true. A
    /// one-shot entry falls silent.
    pub(crate) fn report(&self) -> Option<Report> {
        let report = self.look()?;
        match report.watch.is_one_shot() && !self.silence(report.epoch) {
            true => None,
            false => Some(report),
        }
    }

    /// Whether there is something to report; taken off the ready list as well.
    pub(crate) fn is_ready(&self) -> bool {
        self.look().is_some()
    }

    /// Whether there is something to report; it stays on the ready list.
    pub(crate) fn is_due(&self) -> bool {
        self.peek().is_some()
    }

    /// What is true of what it watches for, now that it is off the ready list.
    fn look(&self) -> Option<Report> {
        self.is_queued.swap(false);
        self.peek()
    }

    fn peek(&self) -> Option<Report> {
        let open = self.open.upgrade()?;
        let (watch, epoch) = {
            let state = self.state.lock();
            if state.is_removed || state.watch.interest.is_empty() {
                return None;
            }
            (state.watch, state.epoch)
        };
        let events = open.poll(watch.interest) & watch.interest;
        let data = watch.data;
        (!events.is_empty()).then_some(Report {
            event: Event { events, data },
            watch,
            epoch,
        })
    }

    /// Ends the watch of that epoch; false if another has, or a newer one is there, which looks
    /// at the file itself.
    fn silence(&self, epoch: u32) -> bool {
        let mut state = self.state.lock();
        let is_ours = state.epoch == epoch && !state.watch.interest.is_empty();
        if is_ours {
            state.watch.interest = Events::empty();
        }
        is_ours
    }

    /// A report could not be given: what it ended goes on.
    pub(crate) fn take_back(&self, report: &Report) {
        let mut state = self.state.lock();
        if state.epoch == report.epoch {
            state.watch = report.watch;
        }
    }
}

impl<H: Host> Observer for Entry<H>
where
    Self: Send + Sync,
{
    fn notify(self: Arc<Self>, events: Events) -> bool {
        Self::notify(&self, events)
    }
}
