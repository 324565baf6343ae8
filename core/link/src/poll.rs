//! When one ring interrupts and when it is polled.
//!
//! An interrupt for each frame starves the work that frames are for; polling an idle
//! ring wastes a CPU. So a ring interrupts while its worker keeps up, and is polled with
//! its interrupt masked while it does not. Let B be the frames that were taken from the
//! ring and wait above it:
//!
//! ```text
//!               B > 0 after a pass, or a full batch
//!   Interrupt ───────────────────────────────▶ Polling ◀─────────────┐
//!       ▲                                       │   │                │ B < resume
//!       └─ nothing pulled, B = 0, armed quiet ──┘   │ B > low, or    │
//!                                                   │ nothing pulled │
//!                                                   │ while B > 0    │
//!                                                   └──▶ Resting ────┘
//! ```
//!
//! Resting leaves frames in the card, whose ring is finite: there they are dropped for
//! nothing when it overflows. Only this ring is masked, never another one's interrupt.
//! A ring that cannot be polled has no such valve: above `high` the chain that arrives is
//! dropped whole, unless a bandwidth limit bounds what waits. The test comes before the
//! chain is queued, so B overshoots by one chain at most.

/// Levels of B, in frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watermarks {
    /// Above it a ring that cannot be polled drops.
    pub high: usize,
    /// Above it polling pauses.
    pub low: usize,
    /// Below it polling goes on.
    pub resume: usize,
}

impl Default for Watermarks {
    fn default() -> Self {
        Self {
            high: HIGH,
            low: LOW,
            resume: RESUME,
        }
    }
}

/// Frames pulled at once.
pub const BATCH_FRAMES: usize = 64;

const HIGH: usize = 1024;
const LOW: usize = 256;
const RESUME: usize = 16;
const _: () = assert!(
    RESUME <= LOW / 2,
    "polling resumes well below where it paused"
);
const _: () = assert!(BATCH_FRAMES <= LOW, "one batch does not fill the worker");

/// What the owner of a ring does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing: the interrupt will come.
    Wait,
    /// Pull this many frames, then say how many came: [`Poller::pulled`].
    Pull(usize),
    /// Leave the ring masked and let the worker drain.
    Rest,
    /// Unmask the interrupt, then say what was there: [`Poller::armed`].
    Arm,
}

/// What becomes of a chain that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Queue it.
    Queue,
    /// Drop it whole.
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Interrupt,
    /// An interrupt came; its batch is on the way up.
    Serving {
        is_batch_full: bool,
    },
    Polling,
    Resting,
    Arming,
}

/// The state of one ring.
#[derive(Clone, Debug)]
pub struct Poller {
    marks: Watermarks,
    can_poll: bool,
    /// A bandwidth limit queues and drops above us, so the high mark does not.
    is_limited: bool,
    state: State,
    backlog: usize,
}

impl Poller {
    /// A ring that interrupts.
    pub fn new(marks: Watermarks, can_poll: bool) -> Self {
        Self {
            marks,
            can_poll,
            is_limited: false,
            state: State::Interrupt,
            backlog: 0,
        }
    }

    /// Says whether a bandwidth limit bounds what waits above.
    pub fn set_limited(&mut self, is_limited: bool) {
        self.is_limited = is_limited;
    }

    /// B: frames that wait above the ring.
    pub fn backlog(&self) -> usize {
        self.backlog
    }

    /// Whether frames are pulled without interrupts now.
    pub fn is_polling(&self) -> bool {
        matches!(self.state, State::Polling | State::Resting | State::Arming)
    }

    /// The ring has interrupted: how many frames to pull. `None` while it is polled; a
    /// late interrupt then says nothing new.
    pub fn interrupt(&mut self) -> Option<usize> {
        let serves = matches!(self.state, State::Interrupt | State::Serving { .. });
        serves.then_some(BATCH_FRAMES)
    }

    /// A chain of `frames` came by interrupt.
    pub fn arrived(&mut self, frames: usize) -> Admission {
        let is_batch_full = frames >= BATCH_FRAMES;
        if self.state == State::Interrupt {
            self.state = State::Serving { is_batch_full };
        }
        if !self.can_poll && !self.is_limited && self.backlog > self.marks.high {
            return Admission::Drop;
        }
        self.backlog += frames;
        Admission::Queue
    }

    /// `backlog` frames wait above the ring now. Wakes a resting poll.
    pub fn observe(&mut self, backlog: usize) {
        self.backlog = backlog;
        if self.state == State::Resting && backlog < self.marks.resume {
            self.state = State::Polling;
        }
    }

    /// The worker has made one pass over what it had; returns whether the ring must be
    /// masked because polling begins.
    pub fn pass_ended(&mut self) -> bool {
        let State::Serving { is_batch_full } = self.state else {
            return false;
        };
        let is_behind = is_batch_full || self.backlog > 0;
        let begins = is_behind && self.can_poll;
        self.state = if begins {
            State::Polling
        } else {
            State::Arming
        };
        begins
    }

    /// What to do with the ring.
    pub fn action(&mut self) -> Action {
        match self.state {
            State::Interrupt => Action::Wait,
            State::Serving { .. } | State::Resting => Action::Rest,
            State::Arming => Action::Arm,
            State::Polling if self.backlog > self.marks.low => {
                self.state = State::Resting;
                Action::Rest
            }
            State::Polling => Action::Pull(BATCH_FRAMES),
        }
    }

    /// A pull brought `frames`.
    pub fn pulled(&mut self, frames: usize) {
        self.backlog += frames;
        self.state = match (frames, self.backlog) {
            (0, 0) => State::Arming,
            (0, _) if self.backlog >= self.marks.resume => State::Resting,
            _ => State::Polling,
        };
    }

    /// The interrupt was unmasked; `waiting` says whether frames were there already, for
    /// which none may come. True if the ring cannot be polled for them: go on as if it
    /// had interrupted.
    #[must_use]
    pub fn armed(&mut self, waiting: bool) -> bool {
        self.state = match waiting && self.can_poll {
            true => State::Polling,
            false => State::Interrupt,
        };
        waiting && !self.can_poll
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polling(backlog: usize) -> Poller {
        let mut poller = Poller::new(Watermarks::default(), true);
        assert_eq!(poller.interrupt(), Some(BATCH_FRAMES));
        assert_eq!(poller.arrived(1), Admission::Queue);
        assert!(poller.pass_ended());
        poller.observe(backlog);
        poller
    }

    #[test]
    fn a_worker_that_keeps_up_leaves_the_ring_interrupting() {
        let mut poller = Poller::new(Watermarks::default(), true);
        assert_eq!(poller.action(), Action::Wait);
        poller.arrived(3);
        poller.observe(0);
        assert!(!poller.pass_ended());
        assert_eq!(poller.action(), Action::Arm);
        assert!(!poller.armed(false));
        assert_eq!(poller.action(), Action::Wait);
        assert!(!poller.is_polling());
    }

    #[test]
    fn a_worker_that_is_behind_masks_the_ring_and_polls() {
        let mut poller = polling(200);
        assert_eq!(poller.action(), Action::Pull(BATCH_FRAMES));
        assert_eq!(poller.interrupt(), None);
    }

    #[test]
    fn polling_pauses_above_low_and_resumes_below_resume() {
        let mut poller = polling(257);
        assert_eq!(poller.action(), Action::Rest);
        poller.observe(16);
        assert_eq!(poller.action(), Action::Rest);
        poller.observe(15);
        assert_eq!(poller.action(), Action::Pull(BATCH_FRAMES));
    }

    #[test]
    fn a_pull_of_nothing_rests_until_the_worker_is_nearly_done() {
        let mut poller = polling(100);
        assert_eq!(poller.action(), Action::Pull(BATCH_FRAMES));
        poller.pulled(0);
        assert_eq!(poller.action(), Action::Rest);
        poller.observe(0);
        assert_eq!(poller.action(), Action::Pull(BATCH_FRAMES));
        poller.pulled(0);
        assert_eq!(poller.action(), Action::Arm);
        assert!(!poller.armed(false));
        assert_eq!(poller.action(), Action::Wait);
    }

    #[test]
    fn frames_that_came_while_arming_are_polled_not_slept_on() {
        let mut poller = polling(0);
        poller.pulled(0);
        assert_eq!(poller.action(), Action::Arm);
        assert!(!poller.armed(true));
        assert_eq!(poller.action(), Action::Pull(BATCH_FRAMES));
    }

    #[test]
    fn a_ring_without_polling_serves_what_came_while_it_was_masked() {
        let mut poller = Poller::new(Watermarks::default(), false);
        poller.arrived(BATCH_FRAMES);
        poller.observe(0);
        assert!(!poller.pass_ended());
        assert_eq!(poller.action(), Action::Arm);
        assert!(poller.armed(true));
        assert_eq!(poller.interrupt(), Some(BATCH_FRAMES));
    }

    #[test]
    fn a_ring_without_polling_never_holds_more_than_high_and_one_chain() {
        let mut poller = Poller::new(Watermarks::default(), false);
        let (mut dropped, longest) = (0, 100);
        for _ in 0..50 {
            if poller.arrived(longest) == Admission::Drop {
                dropped += longest;
            }
            assert!(poller.backlog() <= 1024 + longest);
        }
        assert_eq!(dropped, 50 * longest - poller.backlog());
        poller.set_limited(true);
        assert_eq!(poller.arrived(longest), Admission::Queue);
    }
}
