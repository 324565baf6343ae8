//! A bad network between two machines, as bad each time.
//!
//! QEMU's `-netdev dgram` sends each Ethernet frame as one datagram to a socket of the
//! host. A [`Relay`] stands between two such sockets, needs no rights, and does to frames
//! what networks do: it loses, delays, doubles, reorders and damages them, and limits
//! their rate. What it does is written to a pcapng file, with the reason beside each frame.
//!
//! ```text
//! machine ── unix datagrams ── Relay { Path left to right, Path right to left } ── machine
//! ```
//!
//! - [`Weather`] says how bad, and [`Fate`] what happens to one frame. The fate of frame
//!   `n` of a direction is a function of the seed, the direction and `n` alone, so
//!   what befalls a frame does not depend on when it comes or what came before.
//! - [`Path`] is one direction, without a clock or a socket: the time is an argument.
//! - [`Relay`] is the shell: two sockets, a thread, the host's clock.
//!
//! Either end may be any program with a datagram socket, not only a machine.
//!
//! Invariants: every frame that came in was delivered, is under way, or was dropped for
//! one counted reason; a path holds at most [`FLIGHTS_MAX`] frames.
//!
//! Not here: switches (there are two ends), and queues with marks (ECN), which `sim` has.

#![forbid(unsafe_code)]

mod capture;
mod counts;
mod fate;
mod path;
mod shell;

pub use capture::{Capture, Notice};
pub use counts::{Counts, DropReason};
pub use fate::{Copy, Fate, Fates, Weather};
pub use path::{Arrival, FLIGHTS_MAX, Flight, Path};
pub use shell::{End, Plan, Relay};

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The first.
    Left,
    /// The second.
    Right,
}

impl Side {
    /// Both, in the order of arrays.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// The other end.
    pub fn peer(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}
