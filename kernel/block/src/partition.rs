//! A partition: a part of a disk with a node of its own, and figures of its own.

use base::Instant;
use block::{Counters, Kind, Operation, SectorRange};
use mach::sync::Spin;

/// A request that is over.
pub(crate) struct Completed {
    pub operation: Operation,
    pub sectors: u64,
    pub begun: Instant,
}

/// A part of a disk.
pub struct Partition {
    /// From 1 on.
    pub number: u8,
    /// `vda1`.
    pub name: &'static str,
    /// Where it lies on the disk.
    pub sectors: SectorRange,
    counters: Spin<Counters>,
}

impl Partition {
    pub(crate) fn new(number: u8, name: &'static str, sectors: SectorRange) -> Self {
        Self {
            number,
            name,
            sectors,
            counters: Spin::default(),
        }
    }

    /// What was done with it.
    pub fn counters(&self) -> Counters {
        self.counters.lock().at(mach::time::now())
    }

    /// A request of it begins.
    pub(crate) fn begin(&self, now: Instant) {
        self.counters.lock().begin(now);
    }

    /// It is over.
    pub(crate) fn end(&self, done: &Completed) {
        let (kind, now) = (Kind::of(done.operation), mach::time::now());
        let mut counters = self.counters.lock();
        counters.end(kind, done.sectors, done.begun, now);
    }

    /// One that began was not taken.
    pub(crate) fn forget(&self) {
        let mut counters = self.counters.lock();
        counters.under_way = counters.under_way.saturating_sub(1);
    }

    /// Counts what is done at once, by a thread that waits for it.
    pub(crate) fn count<T>(
        &self,
        operation: Operation,
        act: impl FnOnce() -> sync::Result<T>,
        bytes: impl FnOnce(&T) -> u64,
    ) -> sync::Result<T> {
        let begun = mach::time::now();
        self.begin(begun);
        let done = act();
        let bytes = done.as_ref().map_or(0, bytes);
        self.end(&Completed {
            operation,
            sectors: bytes / block::SECTOR_BYTES,
            begun,
        });
        done
    }
}
