//! Whom to kill when no memory is left (proc_pid_oom_score_adj(5)).
//!
//! A process weighs as many pages as it has resident or as page tables, more or less by its
//! adjustment: in thousandths of all memory, -1000 protects it. Process 1 counts for a part of its
//! weight only if it hogs memory, else for next to nothing: the machine ends with it.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;

use base::PAGE_BYTES;

use crate::processes::{Process, family};
use crate::signal::{Info, Signal, send_to_process};

/// A process with this adjustment is never chosen.
pub const ADJUSTMENT_MIN: i32 = -1000;
/// A process with this adjustment is chosen first.
pub const ADJUSTMENT_MAX: i32 = 1000;

/// What part of its weight process 1 counts for if it hogs memory.
const INIT_SHARE: u64 = 4;
/// A process that weighs more than this share of all memory hogs it.
const HOG_SHARE: u64 = 4;

fn total_pages() -> u64 {
    mach::mem::stats().total
}

fn held_pages(process: &Process) -> u64 {
    let bytes = process
        .space
        .with(|space| space.resident_bytes() + space.table_bytes());
    bytes / PAGE_BYTES as u64
}

/// What the process weighs, in pages; `None` if nothing can be gained from its end.
fn weight(process: &Process, total: u64) -> Option<u64> {
    let adjustment = process.oom_adjustment.load(Relaxed);
    let held = held_pages(process);
    if adjustment == ADJUSTMENT_MIN || held == 0 || process.is_ending() {
        return None;
    }
    let share = total as i64 / i64::from(ADJUSTMENT_MAX) * i64::from(adjustment);
    let weight = held.saturating_add_signed(share).max(1);
    Some(match process.id() {
        family::INIT if is_hog(weight) => weight.div_ceil(INIT_SHARE),
        family::INIT => 0,
        _ => weight,
    })
}

/// The process that weighs most, and its weight in pages.
pub fn choose() -> Option<(Arc<Process>, u64)> {
    let total = total_pages();
    family::heaviest(|process| weight(process, total))
}

/// Whether something of this weight takes most of the memory for itself.
pub fn is_hog(weight: u64) -> bool {
    weight > total_pages() / HOG_SHARE
}

/// The weight in thousandths of all memory (/proc/PID/oom_score).
pub fn score(process: &Process) -> u64 {
    let total = total_pages();
    weight(process, total).unwrap_or(0) * ADJUSTMENT_MAX as u64 / total.max(1)
}

/// Ends the process, and says so in the log.
pub fn kill(process: &Process) {
    let mib = |pages: u64| (pages * PAGE_BYTES as u64) >> 20;
    let name = process.first_thread().map(|thread| *thread.name.lock());
    let name = name.unwrap_or_default();
    let shown = name.split(|byte| *byte == 0).next().unwrap_or_default();
    mach::klog!(
        "killed {} ({}): out of memory; it used {} MiB of {} MiB",
        shown.escape_ascii(),
        process.id(),
        mib(held_pages(process)),
        mib(total_pages()),
    );
    // SIGKILL is not queued, so it always fits.
    let _ = send_to_process(process, Info::kernel(Signal::KILL));
}
