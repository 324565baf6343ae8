//! What an event counts, and for whom it tells what.

use base::CpuId;
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
    /// What read(2) gives besides the count; Linux's own bits (PERF_FORMAT_*).
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

bitflags! {
    /// What a sample says; Linux's own bits (PERF_SAMPLE_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Fields: u64 {
        /// Where the CPU was.
        const IP = 1;
        /// Who ran.
        const TID = 1 << 1;
        /// When.
        const TIME = 1 << 2;
        /// The address of data; none is known.
        const ADDR = 1 << 3;
        /// What read(2) would give.
        const READ = 1 << 4;
        /// The callers.
        const CALLCHAIN = 1 << 5;
        /// The event's number.
        const ID = 1 << 6;
        /// On which CPU.
        const CPU = 1 << 7;
        /// How much it stands for.
        const PERIOD = 1 << 8;
        /// The event's number, which is the same for those that are inherited.
        const STREAM_ID = 1 << 9;
        /// The event's number, where all records have it.
        const IDENTIFIER = 1 << 16;
    }
}

bitflags! {
    /// What gets into the ring; Linux's own bits of `struct perf_event_attr`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AttrBits: u64 {
        /// No samples of programs.
        const NO_USER = 1 << 4;
        /// No samples of the kernel.
        const NO_KERNEL = 1 << 5;
        /// Files that are mapped to be executed.
        const MMAP = 1 << 8;
        /// Names of threads.
        const COMM = 1 << 9;
        /// Threads that come and go.
        const TASK = 1 << 13;
        /// All records say what a sample says of who and when.
        const TRAILER = 1 << 18;
        /// No callers in the kernel.
        const NO_KERNEL_CALLERS = 1 << 21;
        /// No callers in programs.
        const NO_USER_CALLERS = 1 << 22;
        /// Mapped files with what stat(2) says of them.
        const MMAP2 = 1 << 23;
    }
}

impl AttrBits {
    /// What is told besides samples.
    pub const EVENTS: Self = Self::MMAP
        .union(Self::COMM)
        .union(Self::TASK)
        .union(Self::MMAP2);
}

/// When a program that waits for records is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakeup {
    /// After so many; 0: when half of the ring is full.
    Records(u32),
    /// After so many bytes.
    Bytes(u32),
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
    /// Nanoseconds from sample to sample; `None` if none are taken.
    pub period_ns: Option<u64>,
    /// What a sample says.
    pub fields: Fields,
    /// What gets into the ring.
    pub hears: AttrBits,
    /// When who waits for the ring is woken.
    pub wakeup: Wakeup,
    /// The only CPU that it is about. The count of a thread's event is still that of all CPUs.
    pub only_on: Option<CpuId>,
}
