//! What programs asked for and we lack: counted for the summary at exit.
//!
//! Bounded: the first `KINDS_MAX` kinds are counted one by one, the rest together.

use alloc::collections::BTreeMap;

use mach::sync::Spin;

/// Different things that are counted apart.
const KINDS_MAX: usize = 256;

/// A call or an option of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Missing {
    /// A call number without a handler.
    Call(u64),
    /// An option: of which call, and its value (a level and name of setsockopt, a
    /// request of ioctl, a flag).
    Option(&'static str, u64),
    /// All that did not fit.
    Others,
}

static COUNTS: Spin<BTreeMap<Missing, u64>> = Spin::new(BTreeMap::new());

/// A program made a call that we do not have.
pub fn count_call(number: u64) {
    count(Missing::Call(number));
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
    for (kind, count) in COUNTS.lock().iter() {
        match kind {
            Missing::Call(number) => mach::klog!("missing syscall={number} count={count}"),
            Missing::Option(call, value) => {
                mach::klog!("missing option={call}:{value:#x} count={count}");
            }
            Missing::Others => mach::klog!("missing others count={count}"),
        }
    }
}
