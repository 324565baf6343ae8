//! What programs asked for and we lack: counted for the summary at exit.
//!
//! Bounded: each call has a counter; of options the first `KINDS_MAX` kinds are counted one
//! by one, the rest together.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering};

use mach::sync::Spin;

use crate::call::{Call, LIMIT, Outcome};
use crate::errno::Errno;

/// Different things that are counted apart.
const KINDS_MAX: usize = 256;

/// An option of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Missing {
    /// An option: of which call, and its value (a level and name of setsockopt, a
    /// request of ioctl, a flag).
    Option(&'static str, u64),
    /// All that did not fit.
    Others,
}

/// Of the machine: it tells the reader of /proc what this kernel lacks.
static COUNTS: Spin<BTreeMap<Missing, u64>> = Spin::new(BTreeMap::new());

/// How often each call was made that we do not have; the last counts all numbers from there on. Of
/// the machine, likewise.
static CALLS: [AtomicU64; LIMIT] = [const { AtomicU64::new(0) }; LIMIT];

/// The handler of calls that we do not have.
///
/// tidy: the clamped number is below the table's length.
pub fn call(call: Call<'_>) -> Outcome {
    let number = (call.regs.orig_rax as usize).min(LIMIT - 1);
    CALLS[number].fetch_add(1, Ordering::Relaxed);
    Err(Errno::ENOSYS)
}

/// A program asked `call` for an option that we do not have.
pub fn count_option(call: &'static str, value: u64) {
    count(Missing::Option(call, value));
}

fn count(kind: Missing) {
    let mut counts = COUNTS.lock();
    let room = counts.len() < KINDS_MAX || counts.contains_key(&kind);
    *counts
        .entry(if room { kind } else { Missing::Others })
        .or_insert(0) += 1;
}

/// Prints the counts on the log, one line a kind.
pub fn report() {
    for (number, count) in CALLS.iter().enumerate() {
        let count = count.load(Ordering::Relaxed);
        if count != 0 {
            mach::klog!("missing syscall={number} count={count}");
        }
    }
    for (kind, count) in COUNTS.lock().iter() {
        match kind {
            Missing::Option(call, value) => {
                mach::klog!("missing option={call}:{value:#x} count={count}");
            }
            Missing::Others => mach::klog!("missing others count={count}"),
        }
    }
}
