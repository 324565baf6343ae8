//! Where a thread's time goes (`accounting::Microstates`).
//!
//! The clock is read where the scheduler reads it anyway, and once more when a thread becomes
//! runnable. What a thread is about when it uses a CPU or gives it away, its [`Mstate`] says:
//! a byte that whoever begins something special sets. So a system call costs nothing here,
//! and a fault two stores.
//!
//! Who may change the phase is whoever may move the thread at that moment: the CPU that runs
//! it, then whoever made it `Ready` until it is on a run queue, then the CPU that takes it
//! off. The lock is for those who read.
//!
//! Lock order: a life's lock is innermost.

use core::sync::atomic::{AtomicU8, Ordering};

use accounting::{MODES, Microstates, Mode, Phase, Reading, Sampled};
use base::{Duration, Instant};
use mach::sync::Spin;

/// What a thread is about in the kernel, which decides its microstate (illumos' `LMS_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mstate {
    /// A system call, or work that interrupts have left.
    Call,
    /// A wait for another thread of the program.
    Lock,
    /// An exception that is no page fault.
    Trap,
    /// A page of instructions.
    TextFault,
    /// Any other page.
    DataFault,
}

impl Mstate {
    const ALL: [Self; 5] = [
        Self::Call,
        Self::Lock,
        Self::Trap,
        Self::TextFault,
        Self::DataFault,
    ];

    /// What it uses the CPU for.
    fn mode(self) -> Mode {
        match self {
            Self::Call | Self::Lock => Mode::System,
            Self::Trap => Mode::Trap,
            Self::TextFault => Mode::TextFault,
            Self::DataFault => Mode::DataFault,
        }
    }

    /// What it waits for when it waits.
    fn wait(self) -> Phase {
        match self {
            Self::Call | Self::Trap => Phase::Sleep,
            Self::Lock => Phase::Lock,
            Self::TextFault => Phase::TextFault,
            Self::DataFault => Phase::DataFault,
        }
    }
}

/// Whom a sample found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The program.
    Program,
    /// The kernel, for the thread.
    Kernel,
}

/// The life of a thread.
pub struct Life {
    microstates: Spin<Microstates>,
    mstate: AtomicU8,
}

impl Life {
    /// Of a thread that waits for its first CPU.
    pub fn new(now: Instant) -> Self {
        Self {
            microstates: Spin::new(Microstates::new(now.as_nanos())),
            mstate: AtomicU8::new(Mstate::Call as u8),
        }
    }

    /// What it has used of CPUs up to `now`, and what samples found.
    pub fn sampled(&self, now: Instant) -> Sampled {
        self.microstates.lock().sampled(now.as_nanos())
    }

    /// The same divided by `Mode`, in nanoseconds.
    pub fn modes_ns(&self, now: Instant) -> [u64; MODES] {
        self.microstates.lock().modes_ns(now.as_nanos())
    }

    /// Where its time has gone up to `now`.
    pub fn read(&self, now: Instant) -> Reading {
        self.microstates.lock().read(now.as_nanos())
    }

    /// What it is about; only the thread itself changes that.
    pub fn mstate(&self) -> Mstate {
        Mstate::ALL[usize::from(self.mstate.load(Ordering::Relaxed))]
    }

    /// It is about something else from now on.
    #[inline]
    pub fn set_mstate(&self, mstate: Mstate) {
        self.mstate.store(mstate as u8, Ordering::Relaxed);
    }

    /// It has a CPU.
    pub(crate) fn run(&self, now: Instant) {
        self.change(Phase::Running, now);
    }

    /// It waits; returns how long it had the CPU, in nanoseconds.
    pub(crate) fn wait(&self, now: Instant) -> u64 {
        self.change(self.mstate().wait(), now)
    }

    /// It could run if it had a CPU; returns how long it was in the former phase.
    pub(crate) fn want_cpu(&self, now: Instant) -> u64 {
        self.change(Phase::Latency, now)
    }

    /// Time since it got the CPU.
    pub(crate) fn slice_used(&self, now: Instant) -> Duration {
        Duration::from_nanos(self.microstates.lock().passed_ns(now.as_nanos()))
    }

    /// Samples have found it in the kernel, or its program.
    pub(crate) fn count(&self, found: Found, samples: u64) -> Mode {
        let mode = match found {
            Found::Program => Mode::User,
            Found::Kernel => self.mstate().mode(),
        };
        self.microstates.lock().count(mode, samples);
        mode
    }

    fn change(&self, phase: Phase, now: Instant) -> u64 {
        self.microstates.lock().change(phase, now.as_nanos())
    }
}
