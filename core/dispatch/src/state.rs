//! Parking and waking: where a thread stands between its CPU and a run queue.
//!
//! P parks and W wakes:
//!
//! ```text
//!            P                switched away
//!  Running ─────▶ Parking ───────────────────▶ Parked
//!     │ W            │ W                          │ W
//!     ▼              ▼       switched away        ▼
//!  Notified      Awakened ───────────────────▶ Ready ──▶ Running
//!     │ P: returns at once, Running again        (on a run queue)
//! ```
//!
//! A thread that waits announces it ([`RunState::begin_park`]), *then* looks at its condition,
//! and parks. A waker changes the condition, *then* takes note of the wake-up
//! ([`RunState::wake`]). Both change the same word by an exchange, also where it stays as it is;
//! so whoever comes second sees what the first did before, and no wake-up is lost.
//!
//! Invariant: a thread is on a run queue exactly while it is `Ready`, and becomes `Ready` only
//! after its registers are saved; so no CPU resumes a thread that another still runs.

use base::lock::Count;

/// Where a thread stands; the arrows are in the module's theory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Waits for a CPU, be it its first one.
    Ready,
    /// On a CPU.
    Running,
    /// On a CPU, and its next park returns at once.
    Notified,
    /// On a CPU, about to leave it.
    Parking,
    /// On a CPU, about to leave it, but woken already.
    Awakened,
    /// Waits for a wake-up.
    Parked,
    /// Will never run again.
    Dead,
}

impl State {
    fn from_number(number: usize) -> Self {
        match number {
            0 => Self::Ready,
            1 => Self::Running,
            2 => Self::Notified,
            3 => Self::Parking,
            4 => Self::Awakened,
            5 => Self::Parked,
            _ => Self::Dead,
        }
    }

    /// What a wake-up makes of it.
    fn woken(self) -> Self {
        match self {
            Self::Running => Self::Notified,
            Self::Parking => Self::Awakened,
            Self::Parked => Self::Ready,
            same => same,
        }
    }
}

/// What a thread is once it has left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffCpu {
    /// It will never run again.
    Over,
    /// It waits for a wake-up.
    Waits,
    /// It was to wait, but was woken: it goes on a run queue.
    Woken,
    /// It made way, and has wanted a CPU since then: it goes on a run queue.
    MadeWay,
}

/// What a waker has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a thread that is Ready belongs on a run queue"]
pub enum Wake {
    /// Nothing: it runs, or has another wake-up to come.
    Noted,
    /// Interrupt its CPU, where it may wait in place, halted.
    Interrupt,
    /// Put it on a run queue.
    Enqueue,
}

/// The state of one thread, which is `Ready` at first.
#[derive(Default)]
pub struct RunState<C>(C);

impl<C: Count> RunState<C> {
    /// The state now; it may change at once.
    #[inline]
    pub fn get(&self) -> State {
        State::from_number(self.0.get())
    }

    /// An exchange, so that what the thread reads afterwards is not older than the change:
    /// wake-ups that it ignored up to then were for something that it now sees.
    #[inline]
    fn put(&self, state: State) -> State {
        State::from_number(self.0.swap(state as usize))
    }

    fn change(&self, from: State, to: State) -> bool {
        self.0.exchange(from as usize, to as usize)
    }

    /// It gets a CPU, or goes on after a wait in place.
    #[inline]
    pub fn run(&self) {
        self.put(State::Running);
    }

    /// It is over, and leaves its CPU for good.
    pub fn end(&self) {
        self.put(State::Dead);
    }

    /// Announces a park; false if a wake-up came first and is hereby used up.
    #[inline]
    pub fn begin_park(&self) -> bool {
        self.change(State::Running, State::Parking) || {
            self.run();
            false
        }
    }

    /// The registers are saved; what becomes of the thread.
    #[inline]
    pub fn leave_cpu(&self) -> OffCpu {
        match self.get() {
            State::Dead => return OffCpu::Over,
            State::Parking if self.change(State::Parking, State::Parked) => return OffCpu::Waits,
            _ => {}
        }
        match self.put(State::Ready) {
            State::Running | State::Notified => OffCpu::MadeWay,
            _ => OffCpu::Woken,
        }
    }

    /// Whether a wake-up came while the thread waits in place.
    #[inline]
    pub fn is_awakened(&self) -> bool {
        self.get() == State::Awakened
    }

    /// Takes note of a wake-up, whose reason is visible already.
    pub fn wake(&self) -> Wake {
        loop {
            let from = self.get();
            if self.change(from, from.woken()) {
                return match from {
                    State::Parking => Wake::Interrupt,
                    State::Parked => Wake::Enqueue,
                    _ => Wake::Noted,
                };
            }
        }
    }

    /// Whether it works, and does not wait in place.
    #[inline]
    pub fn works(&self) -> bool {
        matches!(self.get(), State::Running | State::Notified)
    }

    /// Whether a CPU runs it or is about to leave it.
    pub fn is_on_cpu(&self) -> bool {
        !matches!(self.get(), State::Ready | State::Parked | State::Dead)
    }
}
