//! The data page, word by word. All words are 64 bits.

/// Even while the rest can be read.
pub const SEQUENCE: usize = 0;
/// Not zero if the clock can be computed here; else programs ask the kernel.
pub const CLOCK_USABLE: usize = 1;
/// Nanoseconds between 1970 and the machine's start.
pub const WALL_OFFSET: usize = 2;
/// How to learn the CPU's number: one of the values `CPU_BY_...`.
pub const CPU_BY: usize = 3;
/// The line of the monotonic clock: three words.
pub const MONOTONIC: usize = 4;
/// The line of the clock that nobody corrects: three words.
pub const RAW: usize = 7;

/// Of a line: a value of the time-stamp counter.
pub const BASE_TICKS: usize = 0;
/// What the clock shows there.
pub const BASE_NANOS: usize = 1;
/// Nanoseconds per tick, as a fraction of 2^32.
pub const MULTIPLIER: usize = 2;

/// What RDPID and RDTSCP tell is the CPU's number in so many low bits, its node above, as
/// under Linux.
pub const NODE_SHIFT: u32 = 12;

/// By asking the kernel.
pub const CPU_BY_CALL: u64 = 0;
/// By RDPID.
pub const CPU_BY_RDPID: u64 = 1;
/// By RDTSCP.
pub const CPU_BY_RDTSCP: u64 = 2;
