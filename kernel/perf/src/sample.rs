//! Giving samples to the events that want them.
//!
//! The NMI handler leaves samples in a queue of its CPU (`mach::profile::tap`), and marks the thread
//! that it has interrupted; that empties the queue before it waits or is in its program again.
//! A sample names its thread, so whoever finds it gives it to the right events. Nothing is
//! locked meanwhile but one list or ring at a time; an event that is closed on another CPU lives
//! until its sample is written.

use mach::profile::tap::{self, Sample};
use sched::Flags;
use task::{self, Thread};

use crate::attributes::AttrBits;
use crate::event::watch::{self, ON_CPU};
use crate::event::{Event, Gauge};
use crate::record::{self, SampleContext};

/// Samples that are given at once: more than a queue has.
const BATCH: usize = 32;

/// Gives the samples of this CPU; `me` is the running thread.
#[cold]
pub fn deliver(me: &Thread) {
    me.clear_flags(Flags::SAMPLES);
    for _ in 0..BATCH {
        match tap::next() {
            Some(sample) => give(&sample),
            None => return,
        }
    }
}

fn give(sample: &Sample) {
    let cpu = mach::cpu::id();
    let moment = SampleContext {
        pid: sample.pid,
        tid: sample.tid,
        at_ns: match sample.at_ns {
            0 => mach::time::now().as_nanos(),
            at_ns => at_ns,
        },
        cpu,
    };
    if let Some(thread) = task::find_thread(sample.tid) {
        watch::each_at(&thread, |gauge, event| take(event, gauge, sample, &moment));
    }
    ON_CPU
        .of(cpu)
        .each(|gauge, event| take(event, gauge, sample, &moment));
}

fn take(event: &Event, gauge: &Gauge, sample: &Sample, moment: &SampleContext) {
    let hears = event.attributes.hears;
    let unwanted = match sample.kernel().is_empty() {
        true => AttrBits::NO_USER,
        false => AttrBits::NO_KERNEL,
    };
    if hears.contains(unwanted) || !event.is_about(moment.cpu) {
        return;
    }
    let period_ns = event.period_ns();
    if let Some(passed_ns) = gauge.pass(period_ns, tap::PERIOD_NS) {
        event.lose(sample.lost);
        let numbers = || event.numbers();
        let record = record::sample::make(event.author(), moment, sample, passed_ns, numbers);
        event.emit(record, moment);
    }
}
