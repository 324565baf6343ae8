//! Commands that enter a running machine: what the host and the kernel's agent say to each other.
//!
//! The problem: many clients each want a process of their own in the machine, with its input,
//! output, signals and status, and there is one stream of bytes between host and machine.
//!
//! The idea: the stream carries *frames*, each of one *channel*. A channel is one command, from its
//! request to its end:
//!
//! ```text
//! host ── ExecPart*, Exec ───────────────────────────────▶ kernel     begins the channel
//!      ── Stdin*, StdinEnd, Window*, Signal*, Credit* ───▶
//!      ◀─ Stdout*, Stderr*, Credit* ─────────────────────
//!      ── Close ─────────────────────────────────────────▶            nobody listens any more
//!      ◀─ Exit or Refused ───────────────────────────────             ends the channel
//! ```
//!
//! A frame is `channel[2] kind[1] zero[1] length[2] payload[length]`, little endian. Channels are
//! numbered from 1 to [`CHANNELS_MAX`] by the host; a `Signal` on channel 0 is for process 1, and `Renew`
//! there for the machine as a whole.
//!
//! Flow control: each direction of each channel begins with [`WINDOW_BYTES`]. Payload of `Stdin` takes from one
//! window, that of `Stdout` and `Stderr` from the other; who has brought bytes to where they belong gives
//! `Credit` back. So who reads slowly stops nobody but its own command, and what waits anywhere is bounded.
//!
//! Invariants:
//! - [`Decoder`] takes any bytes: what is no frame is [`Malformed`], after which the stream says nothing any more.
//! - What [`Request::decode`] gives lies in the bytes it was given.
//!
//! A channel may carry files instead of a command ([`Task`]): its input or its output is a [`tree`] then. Or it
//! changes the machine's links, and has no input.
//!
//! Not here: who multiplexes (`host/cli`), and how commands run (`kernel/agent`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod decoder;
mod message;
mod refusal;
mod request;
#[cfg(test)]
mod tests;
pub mod tree;

pub use decoder::{Decoder, Malformed};
pub use message::{Frame, Message, Renewal};
pub use refusal::Refusal;
pub use request::{Depth, Request, Strings, Task, Window, block};

/// Bytes of payload in a frame, at most.
pub const PAYLOAD_BYTES_MAX: usize = 4096;
/// Bytes before the payload.
pub const HEADER_BYTES: usize = 6;
/// Bytes of a frame, at most.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + PAYLOAD_BYTES_MAX;
/// Channels at once.
pub const CHANNELS_MAX: u16 = 64;
/// Bytes that may be under way in one direction of a channel.
pub const WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of a request, at most, in as many frames as it takes.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Bytes of randomness that a machine is told.
pub const SEED_BYTES: usize = 32;
