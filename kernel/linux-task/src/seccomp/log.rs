//! Calls that a filter wants written down (SECCOMP_RET_LOG, SECCOMP_FILTER_FLAG_LOG).
//!
//! A program could fill the machine's log with them, so there are ten lines a second at most, as
//! Linux limits them.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use task::Thread;
use task::seccomp::{CallData, Verdict};

const LINES_PER_SECOND_MAX: u64 = 10;

/// The second in the upper half, its lines in the lower. The log is the machine's, and so is the
/// limit.
static LINES: AtomicU64 = AtomicU64::new(0);

/// One line: who called what.
pub fn write(thread: &Thread, data: &CallData, verdict: Verdict) {
    if !has_room() {
        return;
    }
    mach::klog!(
        "seccomp pid={} tid={} syscall={} ip={:#x} action={:?} data={}",
        thread.process.id(),
        thread.id(),
        data.number,
        data.instruction,
        verdict.action,
        verdict.data
    );
}

fn has_room() -> bool {
    let second = mach::time::now().as_nanos() / 1_000_000_000;
    let one_more = |lines: u64| match lines >> 32 == second {
        true => Some(lines + 1).filter(|lines| lines & 0xffff_ffff <= LINES_PER_SECOND_MAX),
        false => Some(second << 32 | 1),
    };
    LINES.fetch_update(Relaxed, Relaxed, one_more).is_ok()
}
