//! Who starts when: entries with IOSQE_IO_DRAIN, and all that come after one.
//!
//! The rule: a drain starts when nothing is under way, and whatever was submitted later waits
//! until it is done. Without one, everything starts at once.

use alloc::collections::{TryReserveError, VecDeque};

/// What becomes of something that was submitted.
#[derive(PartialEq, Eq, Debug)]
pub enum Turn<T> {
    /// It starts.
    Start(T),
    /// It waits for its turn.
    Wait,
}

struct Waiting<T> {
    what: T,
    is_drain: bool,
}

/// What is under way, and what waits.
pub struct Drain<T> {
    active: usize,
    is_drain_active: bool,
    waiting: VecDeque<Waiting<T>>,
}

impl<T> Default for Drain<T> {
    fn default() -> Self {
        Self {
            active: 0,
            is_drain_active: false,
            waiting: VecDeque::new(),
        }
    }
}

impl<T> Drain<T> {
    /// Makes room for one more.
    pub fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.waiting.try_reserve(1)
    }

    /// Something was submitted; [`Drain::reserve`] came before.
    pub fn submit(&mut self, what: T, is_drain: bool) -> Turn<T> {
        let must_wait =
            self.is_drain_active || !self.waiting.is_empty() || (is_drain && self.active > 0);
        if must_wait {
            self.waiting.push_back(Waiting { what, is_drain });
            return Turn::Wait;
        }
        self.start(is_drain);
        Turn::Start(what)
    }

    /// Starts something that nothing has to be kept of, unless it would have to wait; whether it did.
    pub fn start_now(&mut self) -> bool {
        let may = !self.is_drain_active && self.waiting.is_empty();
        if may {
            self.active += 1;
        }
        may
    }

    /// Whether something waits for its turn.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn start(&mut self, is_drain: bool) {
        self.active += 1;
        self.is_drain_active = is_drain;
    }

    /// Something that was started is done.
    pub fn done(&mut self) {
        self.active = self.active.saturating_sub(1);
        if self.active == 0 {
            self.is_drain_active = false;
        }
    }

    /// What starts now; to be asked until there is nothing.
    pub fn start_next(&mut self) -> Option<T> {
        let first = self.waiting.front()?;
        if self.is_drain_active || (first.is_drain && self.active > 0) {
            return None;
        }
        let first = self.waiting.pop_front()?;
        self.start(first.is_drain);
        Some(first.what)
    }

    /// Something that waits and is meant, which starts out of turn, to be ended.
    pub fn take_waiting(&mut self, is_meant: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.waiting.iter().position(|one| is_meant(&one.what))?;
        let taken = self.waiting.remove(at)?;
        self.active += 1;
        Some(taken.what)
    }
}
