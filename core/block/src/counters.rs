//! What a disk has done: the columns of /proc/diskstats (Linux's Documentation/admin-guide/iostats).

use base::Instant;

use crate::request::Operation;

/// What requests are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes, zeroes among them.
    Write,
    /// Discards.
    Discard,
    /// Flushes that were asked for.
    Flush,
}

impl Kind {
    /// What an operation counts as.
    pub fn of(operation: Operation) -> Self {
        match operation {
            Operation::Read => Self::Read,
            Operation::Write(_) | Operation::WriteZeroes { .. } => Self::Write,
            Operation::Discard => Self::Discard,
            Operation::Flush => Self::Flush,
        }
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Their sectors.
    pub sectors: u64,
    /// Nanoseconds that they were under way, together.
    pub waited_ns: u64,
}

/// What one queue has done; sums of them are a disk's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Reads.
    pub reads: Tally,
    /// Writes.
    pub writes: Tally,
    /// Discards.
    pub discards: Tally,
    /// Flushes.
    pub flushes: Tally,
    /// Requests that have not ended.
    pub under_way: u64,
    /// Nanoseconds in which there were any.
    pub busy_ns: u64,
    /// The sum over time of how many there were.
    pub weighted_ns: u64,
    /// Requests that the device called failed.
    pub failed: u64,
    /// Requests that were sent again after the device was started anew.
    pub retried: u64,
    /// Requests that were given up.
    pub timed_out: u64,
    /// Commands that requests were cut into.
    pub commands: u64,
    since: Option<Instant>,
}

impl Counters {
    pub(crate) fn tally_mut(&mut self, kind: Kind) -> &mut Tally {
        match kind {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
            Kind::Discard => &mut self.discards,
            Kind::Flush => &mut self.flushes,
        }
    }

    /// A request begins.
    #[inline]
    pub fn begin(&mut self, now: Instant) {
        self.pass(now);
        self.under_way += 1;
    }

    /// One that began then is over.
    #[inline]
    pub fn end(&mut self, kind: Kind, sectors: u64, begun: Instant, now: Instant) {
        self.pass(now);
        self.under_way = self.under_way.saturating_sub(1);
        let tally = self.tally_mut(kind);
        tally.requests += 1;
        tally.sectors += sectors;
        tally.waited_ns += now.since(begun).as_nanos();
    }

    /// They as of now.
    pub fn at(&self, now: Instant) -> Self {
        let mut counters = *self;
        counters.pass(now);
        counters
    }

    #[inline]
    pub(crate) fn pass(&mut self, now: Instant) {
        // Many begin or end at once.
        if self.since == Some(now) {
            return;
        }
        if self.under_way != 0 {
            let passed_ns = now.since(self.since.unwrap_or(now)).as_nanos();
            self.busy_ns += passed_ns;
            self.weighted_ns += passed_ns * self.under_way;
        }
        self.since = Some(now);
    }

    /// Adds another queue's. Queues that are busy at once count twice as busy.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.discards, other.discards),
            (&mut self.flushes, other.flushes),
        ] {
            sum.requests += more.requests;
            sum.sectors += more.sectors;
            sum.waited_ns += more.waited_ns;
        }
        self.under_way += other.under_way;
        self.busy_ns += other.busy_ns;
        self.weighted_ns += other.weighted_ns;
        self.failed += other.failed;
        self.retried += other.retried;
        self.timed_out += other.timed_out;
        self.commands += other.commands;
    }
}
