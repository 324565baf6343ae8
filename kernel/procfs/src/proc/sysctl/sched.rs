//! `kernel.sched_*`: how much of a CPU real-time threads may have (sched(7)).

use core::fmt::Write;
use core::sync::atomic::Ordering;

use super::form::INT_MAX;
use super::{form, parse_signed};
use sched::ROUND;
use sched::budget::{PERIOD_US, RUNTIME_US};
use sync::{Error, Result};
use vfs::pseudo::Entry;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry {
        path: "sys/kernel/sched_rt_period_us",
        generate: |text| writeln!(text, "{}", PERIOD_US.load(Ordering::Relaxed)),
        store: Some(set_period),
    },
    Entry {
        path: "sys/kernel/sched_rt_runtime_us",
        generate: |text| writeln!(text, "{}", RUNTIME_US.load(Ordering::Relaxed)),
        store: Some(set_runtime),
    },
    Entry {
        path: "sys/kernel/sched_rr_timeslice_ms",
        generate: |text| writeln!(text, "{}", ROUND.as_millis()),
        store: Some(|bytes| form::unchanged(bytes, ROUND.as_millis())),
    },
];

fn set_period(bytes: &[u8]) -> Result<()> {
    let period: i64 = form::parse(bytes, 1..=INT_MAX)?;
    if RUNTIME_US.load(Ordering::Relaxed) > period {
        return Err(Error::Invalid);
    }
    PERIOD_US.store(period.unsigned_abs(), Ordering::Relaxed);
    Ok(())
}

/// -1 is for all there is.
fn set_runtime(bytes: &[u8]) -> Result<()> {
    let runtime = i64::from(parse_signed(bytes)?);
    let period = PERIOD_US.load(Ordering::Relaxed).cast_signed();
    if !(-1..=period).contains(&runtime) {
        return Err(Error::Invalid);
    }
    RUNTIME_US.store(runtime, Ordering::Relaxed);
    Ok(())
}
