//! The counters of known speed that a machine may have, the best first: KVM's clock, the
//! power-management timer of ACPI, a channel of the interval timer.
//!
//! Under an emulator without KVM all of them, and the time-stamp counter with them, follow
//! the host's monotonic clock: they run on while the host keeps the process from running,
//! and stand while the machine is stopped by its monitor. What passed then only the clock
//! chip tells (`rtc`), or KVM's wall clock.
//!
//! Not used: the high-precision event timer. Its counter is the profiler's, which sets it to
//! zero, and a machine that has one has the power-management timer too.

use timekeeping::{Reading, Reference};

use super::{kvmclock, pit, pm_timer};

/// A counter of known speed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Device {
    KvmClock,
    PmTimer(pm_timer::PmTimer),
    Pit(pit::Channel),
}

/// Readings of which the narrowest is taken.
const READINGS: usize = 8;

impl Device {
    /// Those that the machine claims to have, the best first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let kvm = kvmclock::enable().then_some(Self::KvmClock);
        let pm_timer = pm_timer::find().map(Self::PmTimer);
        let pit = pit::free_channel().map(Self::Pit);
        [kvm, pm_timer, pit].into_iter().flatten()
    }

    pub(super) fn reference(self) -> Reference {
        match self {
            Self::KvmClock => kvmclock::REFERENCE,
            Self::PmTimer(timer) => timer.reference(),
            Self::Pit(_) => pit::REFERENCE,
        }
    }

    pub(super) fn read(self) -> Reading {
        match self {
            Self::KvmClock => kvmclock::read(),
            Self::PmTimer(timer) => timer.read(),
            Self::Pit(channel) => channel.read(),
        }
    }

    /// The narrowest of several readings.
    pub(super) fn read_well(self) -> Reading {
        let first = self.read();
        (1..READINGS).fold(first, |best, _| best.narrower(self.read()))
    }
}

/// Reads a reference between two readings of our counter.
pub(super) fn bracketed(read: impl FnOnce() -> u64) -> Reading {
    let before = super::cycles();
    let count = read();
    let after = super::cycles();
    Reading {
        before,
        count,
        after,
    }
}
