//! Samples by performance counter: which one, how it is driven, whose an NMI is.
//!
//! The problem: a timer of the machine interrupts one CPU, which must interrupt the others, idle
//! ones included. A counter is each CPU's own, and where there is one it should be used.
//!
//! The idea: a counter of the cycles in which a CPU is not halted begins one period below its
//! end, so that it overflows after a period of work. The overflow raises an NMI by the
//! local APIC (LVTPC), whose handler takes a sample and begins the next period. A CPU that
//! is idle counts nothing and is not woken.
//!
//! All of this happens in the NMI handler ([`Sampler::on_nmi`]). Who wants samples, or no more
//! of them, changes the wish first and then sends every CPU an NMI, itself included:
//! - an NMI does not interrupt another, so no two flows of control drive a counter at once;
//! - an NMI that is merged with another still comes after the wish, so the last wish holds.
//!
//! Invariant **Own registers**: a [`Register`] is one of performance monitoring, which changes
//! neither memory nor the flow of control. A [`Counter`] names registers that CPUID offers,
//! and writes only what is defined there.
//!
//! Nobody else in the machine uses the counters; an NMI of one that firmware left running is no
//! sample.
//!
//! Not here: reading and writing the registers, sending NMIs, taking samples (`mach`).

mod offer;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use offer::Counter;

use core::sync::atomic::{AtomicBool, Ordering};

/// A model-specific register of performance monitoring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register(u32);

impl Register {
    /// Its number, for RDMSR and WRMSR.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What the counter of this CPU is driven by.
pub trait Registers {
    /// Reads a register.
    fn read(&self, register: Register) -> u64;
    /// Writes a register.
    fn write(&self, register: Register, value: u64);
    /// Lets counters raise NMIs, by LVTPC. Intel's processors forbid it with each that they raise.
    fn connect(&self);
    /// Lets them raise none.
    fn disconnect(&self);
}

/// What became of one CPU's counter.
#[derive(Debug, Default)]
pub struct Sampler {
    is_armed: AtomicBool,
}

impl Sampler {
    /// A counter that nobody has touched.
    pub const fn new() -> Self {
        Self {
            is_armed: AtomicBool::new(false),
        }
    }

    /// To be called by every NMI of the CPU: brings the counter to what is wanted. Returns whether
    /// it had overflowed, and a sample is due; other NMIs are somebody else's.
    pub fn on_nmi(&self, is_wanted: bool, counter: &Counter, registers: &impl Registers) -> bool {
        let was_armed = self.is_armed.swap(is_wanted, Ordering::Relaxed);
        let is_due = is_wanted && was_armed && counter.has_overflowed(registers);
        if is_due || is_wanted && !was_armed {
            counter.arm(registers);
        } else if was_armed && !is_wanted {
            counter.disarm(registers);
        }
        is_due
    }
}
