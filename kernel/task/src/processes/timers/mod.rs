//! Timers that send signals: alarms, interval timers, POSIX timers, and what watches RLIMIT_CPU.
//!
//! A timer belongs to a process. Its clock is the machine's, or the CPU time of the process or of
//! one of its threads; either way it is an entry in the deadlines of a CPU (`sched::timer`).

mod process;
mod signal_timer;

pub use process::{Interval, ProcessTimers};
pub use signal_timer::{Base, SignalTimer, Target};
