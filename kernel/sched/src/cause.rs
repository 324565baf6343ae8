//! What a CPU is in the kernel for, as far as lengths of stretches are told apart by it
//! ([`crate::preempt_off`]).

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// System calls with a number below this are told apart.
const CALLS: u32 = 512;
/// Causes that are neither calls nor softirqs.
const OTHERS: usize = 4;
/// Softirqs.
pub(crate) const SOFTIRQS: usize = 8;
/// All causes that are no calls, the softirqs last and in their order.
const KINDS: [&str; OTHERS + SOFTIRQS] = [
    "leave",
    "interrupt",
    "fault",
    "trap",
    "timer",
    "net",
    "volume",
    "block",
    "console",
    "async-io",
    "garbage",
    "balloon",
];
/// How many causes there are.
pub(crate) const CAUSES: usize = CALLS as usize + KINDS.len();
/// What a CPU is in the kernel for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause(u32);

impl Cause {
    /// On the way back to a program: signals, and what interrupts have left.
    pub const LEAVE: Self = Self(CALLS);
    /// An interrupt of a program.
    pub const INTERRUPT: Self = Self(CALLS + 1);
    /// A page fault of a program.
    pub const FAULT: Self = Self(CALLS + 2);
    /// Any other exception of a program.
    pub const TRAP: Self = Self(CALLS + 3);

    /// The system call of this number.
    #[inline]
    pub fn call(number: u64) -> Self {
        Self(number.min(u64::from(CALLS) - 1) as u32)
    }

    /// The work of the softirq of this number.
    pub(crate) fn softirq(number: u32) -> Self {
        Self(CALLS + OTHERS as u32 + number)
    }

    /// All causes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..CAUSES as u32).map(Self)
    }

    /// Its place among [`Self::all`].
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Cause {
    /// `call` and its number, or a word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(CALLS) {
            None => write!(f, "call {}", self.0),
            Some(kind) => f.write_str(KINDS[kind as usize]),
        }
    }
}

/// What a thread is in the kernel for; while it runs, its CPU has that.
pub(crate) struct CurrentCause(AtomicU32);

impl CurrentCause {
    /// The way back to a program, from which threads start.
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(Cause::LEAVE.0))
    }

    /// It goes about something else.
    #[inline]
    pub(crate) fn set(&self, cause: Cause) {
        self.0.store(cause.0, Relaxed);
    }

    pub(crate) fn get(&self) -> Cause {
        Cause(self.0.load(Relaxed))
    }
}
