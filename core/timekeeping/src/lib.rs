//! A clock made of a fast counter and kept right by slower ones.
//!
//! The problem: the time-stamp counter is quick to read but of unknown speed, and what is
//! known of it was measured while the host may have stopped this CPU at any moment. A clock
//! that is wrong at boot must not stay wrong, one that is corrected must not go backwards,
//! and a program may adjust it (adjtimex(2)) on top.
//!
//! The idea: a reference is read *between* two readings of the counter ([`Reading`]), so
//! that a pause of the host shows as a wide bracket, and each speed that follows from two
//! of them carries its own doubt ([`Rate`]). [`Calibration`] goes on until a doubt is small
//! and two legs agree; [`Discipline`] then follows the reference for ever, by bending the
//! clock's line ([`Scale`]), never by moving it. [`Watch`] notices by a clock chip, which
//! shows nothing but whole seconds, that the host's time ran on while the counters stood.
//! [`Ntp`] is what adjtimex(2) does to the clock, by the rules of Linux's manual page.
//!
//! Invariant **Continuity**: a [`Scale`] is bent only through a point that it showed.
//!
//! Not here: the devices and the seqlock (`kernel/mach/src/time`), the call's structure
//! (`kernel/linux`). Nothing here reads a clock.
#![no_std]
#![forbid(unsafe_code)]

mod calibration;
mod discipline;
mod ntp;
mod rate;
mod scale;
mod speed;
mod watch;

pub use calibration::Calibration;
pub use discipline::{Discipline, Outcome, SLEW_MAX};
pub use ntp::{Adjusted, Ntp, NtpError, Request, modes, status};
pub use rate::{Rate, Reading, Reference};
pub use scale::Scale;
pub use speed::Speed;
pub use watch::Watch;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;
