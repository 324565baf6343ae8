//! timerfd: expirations that threads wait for and read as a number.
//!
//! Nothing counts while nobody reads: the number of expirations follows from the clock
//! when it is asked for. The deadline of the CPU only says when to tell those who wait;
//! it is set anew by each read of a periodic timer.

use alloc::string::String;
use alloc::sync::{Arc, Weak};

use base::{Duration, Instant};
use mach::sync::Spin;
use mm::io::{Sink, Source};
use sched::timer::{self, Expire, Target, TimerId};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};

use vfs::file::{File, OpenFile};

/// When a timer fires next, and how often after that; disarmed at `Instant::NEVER`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The next expiration that has not been read.
    pub next: Instant,
    /// The time between expirations; zero for a single one.
    pub interval: Duration,
}

impl Schedule {
    /// Never.
    pub const DISARMED: Self = Self {
        next: Instant::NEVER,
        interval: Duration::ZERO,
    };

    /// Takes the expirations up to `now`; returns how many there are.
    fn take_expirations(&mut self, now: Instant) -> u64 {
        if self.next == Instant::NEVER || now < self.next {
            return 0;
        }
        let interval_ns = self.interval.as_nanos();
        let Some(more) = (now - self.next).as_nanos().checked_div(interval_ns) else {
            self.next = Instant::NEVER;
            return 1;
        };
        let count = more + 1;
        self.next += Duration::from_nanos(count.saturating_mul(interval_ns));
        count
    }
}

struct State {
    schedule: Schedule,
    alarm: Option<TimerId>,
}

/// The object of timerfd_create(2).
pub struct TimerFd {
    /// Whether its absolute times are those of the wall clock.
    pub follows_wall_clock: bool,
    state: Spin<State>,
    pollee: Pollee,
    me: Weak<TimerFd>,
}

/// Tells a timer's readers of its expiration; does not keep the timer alive.
struct Alarm(Weak<TimerFd>);

impl Expire for Alarm {
    fn expire(self: Arc<Self>, _now: Instant) {
        if let Some(timer) = self.0.upgrade() {
            timer.pollee.notify(Events::READABLE);
        }
    }
}

impl TimerFd {
    /// A disarmed timer.
    pub fn new(follows_wall_clock: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            follows_wall_clock,
            state: Spin::new(State {
                schedule: Schedule::DISARMED,
                alarm: None,
            }),
            pollee: Pollee::new(),
            me: me.clone(),
        })
    }

    /// What is left until the next expiration (zero if disarmed), and the interval.
    pub fn remaining(&self) -> (Duration, Duration) {
        let now = mach::time::now();
        let mut schedule = self.state.lock().schedule;
        schedule.take_expirations(now);
        match schedule.next {
            Instant::NEVER => (Duration::ZERO, schedule.interval),
            next => (next - now, schedule.interval),
        }
    }

    /// Follows another schedule from now on.
    pub fn set(&self, schedule: Schedule) {
        let mut state = self.state.lock();
        state.schedule = schedule;
        self.arm(&mut state);
    }

    fn arm(&self, state: &mut State) {
        if let Some(alarm) = state.alarm.take() {
            timer::cancel(alarm);
        }
        if state.schedule.next != Instant::NEVER {
            let alarm = Arc::new(Alarm(self.me.clone()));
            state.alarm = Some(timer::add(state.schedule.next, Target::Call(alarm)));
        }
    }

    fn take(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let count = state.schedule.take_expirations(mach::time::now());
        if count == 0 {
            return None;
        }
        self.arm(&mut state);
        Some(count)
    }
}

impl File for TimerFd {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        if to.remaining() < size_of::<u64>() {
            return Err(Error::Invalid);
        }
        let count = match open.is_nonblocking() {
            true => self.take().ok_or(Error::WouldBlock)?,
            false => self
                .pollee
                .queue
                .wait(Wait::INTERRUPTIBLE, || self.take())?,
        };
        to.put_whole(&count.to_ne_bytes())
    }

    fn write(&self, _open: &OpenFile, _from: &mut Source<'_>) -> Result<usize> {
        Err(Error::Invalid)
    }

    fn poll(&self) -> Events {
        let next = self.state.lock().schedule.next;
        let has_expired = next != Instant::NEVER && mach::time::now() >= next;
        if has_expired {
            Events::READABLE
        } else {
            Events::empty()
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn label(&self) -> String {
        String::from("anon_inode:[timerfd]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Drop for TimerFd {
    fn drop(&mut self) {
        if let Some(alarm) = self.state.get_mut().alarm.take() {
            timer::cancel(alarm);
        }
    }
}
