//! Sums that must come out even.
//!
//! What a program is told that it used must be what it used: parts add up to the whole,
//! and no figure ever goes back. The kernel measures; what follows from the measurements
//! is arithmetic, and is here, where it runs and is tested anywhere.
//! Not here: clocks, threads, memory.
#![no_std]
#![forbid(unsafe_code)]

mod average;
mod commit;
mod cpu_time;
mod load;
mod microstates;
#[cfg(test)]
mod random;

pub use average::{LoadAverages, STEP as LOAD_STEP};
pub use commit::{Limit, Policy};
pub use cpu_time::{CpuTime, MODES, Mode, Sampled, Split};
pub use load::{Load, Served};
pub use microstates::{MICROSTATES, Microstates, Phase, Reading};
