//! What an event counts, and for whom it tells what.

use bitflags::bitflags;

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nanoseconds of a CPU.
    Clock,
    /// Page faults.
    Faults,
    /// Those that waited for nothing.
    MinorFaults,
    /// Those that waited for a file.
    MajorFaults,
    /// Context switches.
    Switches,
    /// Moves from one CPU to another.
    Migrations,
    /// Nothing: what cannot happen here, and events that only listen.
    Nothing,
}

bitflags! {
    /// What read(2) gives besides the count; Linux' own bits (PERF_FORMAT_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Format: u64 {
        /// For how long it was on.
        const TIME_ENABLED = 1;
        /// For how long it counted, which is the same here.
        const TIME_RUNNING = 2;
        /// Its number.
        const ID = 4;
        /// The same of all events of the group.
        const GROUP = 8;
        /// How many samples were lost.
        const LOST = 16;
    }
}

/// What an event is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// What it counts.
    pub kind: Kind,
    /// It waits to be switched on.
    pub is_disabled: bool,
    /// Threads that the watched ones make are watched as well.
    pub is_inherited: bool,
    /// execve(2) switches it on.
    pub starts_at_exec: bool,
    /// What read(2) gives.
    pub format: Format,
}
