//! When lanes run that wait for a limit or for room, and leases end: one timer for all.

use alloc::sync::Arc;

use base::Instant;
use mach::sync::{Once, Spin};
use sched::timer::{self, Expire, Target, TimerId};
use sched::{Softirq, raise};

use super::{change, control};

/// When lanes want to run again: the first of all links' wishes.
static ALARM: Spin<Option<(Instant, TimerId)>> = Spin::new(None);
/// Who then runs them, made once.
static WORKER: Once<Arc<Worker>> = Once::new();

/// Has everything run before this CPU halts or returns to a program.
pub(super) fn now() {
    at(mach::time::now());
    raise(Softirq::Timer);
}

/// Has everything run at `deadline` at the latest.
pub(super) fn at(deadline: Instant) {
    let mut alarm = ALARM.lock();
    if alarm.map_or(Instant::NEVER, |(armed, _)| armed) <= deadline {
        return;
    }
    if let Some((_, timer)) = alarm.take() {
        timer::cancel(timer);
    }
    let worker = WORKER.call_once(|| Arc::new(Worker)).clone();
    *alarm = Some((deadline, timer::add(deadline, Target::Call(worker))));
}

struct Worker;

impl Expire for Worker {
    fn expire(self: Arc<Self>, now: Instant) {
        *ALARM.lock() = None;
        change::each_port(|lanes| lanes.run());
        let leases = control::with_links(|links| links.expire(now));
        at(leases);
    }
}
