//! One event at one thread or CPU.

use alloc::sync::Weak;
use core::ops::AddAssign;

use base::CpuId;
use cred::Charge;
use mach::sync::Spin;
use task::Thread;

use super::{Event, reading};
use crate::attributes::Kind;

/// Where a gauge is.
pub(super) enum Place {
    /// At a thread; it counts while that runs.
    Thread(Weak<Thread>),
    /// At a CPU.
    Cpu(CpuId),
}

/// What was counted, and while the gauge was on for how many nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Count {
    pub value: u64,
    pub on_ns: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.value += other.value;
        self.on_ns += other.on_ns;
    }
}

#[derive(Default)]
struct State {
    /// Up to when it was last switched off.
    counted: Count,
    /// What the counters showed when it was switched on.
    since: Option<Count>,
    /// Nanoseconds since the last sample.
    unsampled_ns: u64,
}

/// One event at one thread or CPU.
pub struct Gauge {
    pub(crate) event: Weak<Event>,
    pub(super) place: Place,
    kind: Kind,
    state: Spin<State>,
    _charge: Charge,
}

impl Gauge {
    pub(super) fn new(event: Weak<Event>, kind: Kind, place: Place, charge: Charge) -> Self {
        Self {
            event,
            place,
            kind,
            state: Spin::default(),
            _charge: charge,
        }
    }

    /// What the counters show now; of a thread that is gone, nothing.
    fn read(&self) -> Option<Count> {
        let of = |kind| match &self.place {
            Place::Thread(thread) => Some(reading::of_thread(&*thread.upgrade()?, kind)),
            Place::Cpu(cpu) => Some(reading::of_cpu(*cpu, kind)),
        };
        Some(Count {
            value: of(self.kind)?,
            on_ns: of(Kind::Clock)?,
        })
    }

    /// Switches it on, or leaves it so.
    pub(super) fn start(&self) {
        let now = self.read();
        let mut state = self.state.lock();
        state.since = state.since.or(now);
    }

    /// Switches it off, or leaves it so.
    pub(super) fn stop(&self) {
        let now = self.read();
        let mut state = self.state.lock();
        let passed = passed(&state, now);
        state.counted += passed;
        state.since = None;
    }

    /// Whether it is on.
    pub(crate) fn is_on(&self) -> bool {
        self.state.lock().since.is_some()
    }

    /// The CPU was found at work, `passed_ns` after the last time: for how long a sample stands,
    /// if one is due after `period_ns`.
    pub(crate) fn pass(&self, period_ns: Option<u64>, passed_ns: u64) -> Option<u64> {
        let period_ns = period_ns?;
        let mut state = self.state.lock();
        state.since?;
        state.unsampled_ns = state.unsampled_ns.saturating_add(passed_ns);
        let is_due = state.unsampled_ns >= period_ns;
        is_due.then(|| core::mem::take(&mut state.unsampled_ns))
    }

    /// What it has counted so far.
    pub(super) fn count(&self) -> Count {
        let now = self.read();
        let state = self.state.lock();
        let mut count = state.counted;
        count += passed(&state, now);
        count
    }

    /// Counts from zero again; the time stays, as in Linux.
    pub(super) fn reset(&self) {
        let now = self.read();
        let mut state = self.state.lock();
        state.counted.value = 0;
        if let (Some(since), Some(now)) = (&mut state.since, now) {
            since.value = now.value;
        }
    }
}

/// Since it was switched on.
fn passed(state: &State, now: Option<Count>) -> Count {
    match (state.since, now) {
        (Some(since), Some(now)) => Count {
            value: now.value.saturating_sub(since.value),
            on_ns: now.on_ns.saturating_sub(since.on_ns),
        },
        _ => Count::default(),
    }
}
