//! Starts virtual machines and talks to them.
//!
//! A [`Machine`] says what to boot; [`Qemu`] is the program found on this host;
//! [`Vm`] is a machine that runs. A machine has two serial ports and may have [`Streams`],
//! and this crate and the kernel agree on them:
//!
//! - The streams are the program's standard input, output and error, and its terminal. On a
//!   machine without them COM1 carries all of these, and nothing else.
//! - COM2 carries the kernel's words outward, one line each, and requests inward.
//!   The lines that mean something to the host start with `sietch: ` and are parsed
//!   in [`report`]. A request is one byte: [`TERMINATE`], [`PROFILE_START`],
//!   [`PROFILE_START_WAITS`], [`PROFILE_STOP`].
//!
//! A machine ends by a write to the `isa-debug-exit` device after the kernel wrote
//! how its program ended on COM2; QEMU then exits with [`ORDERLY_EXIT`]. A program may also
//! restart it: QEMU then exits with [`RESET_EXIT`]. Any other
//! end of QEMU is the kernel's or QEMU's failure.
//!
//! Not here: what goes into the image (`cli`), and what the numbers mean.

#![forbid(unsafe_code)]

mod args;
mod balloon;
mod cmdline;
mod error;
mod machine;
mod names;
pub mod namespace;
pub mod passt;
mod ports;
mod program;
mod qmp;
pub mod report;
pub mod snapshot;
mod starter;
mod streams;
mod symbols;
mod tap;
mod transcript;
pub mod virtiofsd;
mod vm;

pub use balloon::{GuestMemory, set_balloon};
pub use cmdline::CommandLine;
pub use error::Error;
pub use machine::{
    Accel, Board, CARD_OF_PROGRAM, Disk, DiskBus, DiskFormat, FolderServer, Forward, Forwarder,
    Machine, Net, Nic, Origin, Owners, Protocol, Stdio, Switched, Trial, Volume,
};
pub use ports::{free_tcp_port, holder_of_port, is_port_free};
pub use program::{Acceleration, Qemu};
pub use qmp::Qmp;
pub use streams::Streams;
pub use symbols::Symbols;
pub use transcript::Transcript;
pub use vm::{Console, Prepared, Vm};

/// The request on COM2 to end the program as `SIGTERM` would.
pub const TERMINATE: u8 = b'T';
/// The request to sample what the CPUs do.
pub const PROFILE_START: u8 = b'P';
/// The request to record what threads wait for.
pub const PROFILE_START_WAITS: u8 = b'W';
/// The request to do neither any more.
pub const PROFILE_STOP: u8 = b'p';

/// QEMU's exit status after an orderly end: the kernel writes 0x10 to the
/// `isa-debug-exit` device, which exits with `value << 1 | 1`.
pub const ORDERLY_EXIT: i32 = 0x21;

/// QEMU's exit status when the machine was reset, for it was told not to start it anew.
pub const RESET_EXIT: i32 = 0;
