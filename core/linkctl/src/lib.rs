//! What the administrator's tools ask of the link layer, as messages, and who answers.
//!
//! # Problem
//! `dladm` and `flowadm` are programs, the links are the kernel's. What crosses between
//! them must be understood by both, bounded, and harmless whatever a program writes.
//!
//! # Idea
//! One [`Request`] in, one [`Answer`] out, both plain values with a byte encoding
//! ([`Request::encode`], [`Answer::decode`] and back). [`serve`] is the whole other end,
//! generic over a [`Shell`] that has the links and their lanes: a kernel's device file
//! passes bytes in and out, a test does the same with a simulated card.
//!
//! ```text
//! dladm ─ Request ─▶ bytes ─▶ device file ─▶ serve ─▶ link::Links
//!       ◀─ Answer ◀─ bytes ◀─────────────── ┘
//! ```
//!
//! The device file is [`DEVICE`]. A `write` is one request, whole; the `read` after it on
//! the same open file is its answer, whole. Nothing is kept between two requests: lists
//! come in pages, and a page is asked for by where it begins.
//!
//! # Invariants
//! - *Bounded*: no message is longer than [`MESSAGE_BYTES_MAX`], no text longer than
//!   [`TEXT_BYTES_MAX`]; a page of the longest rows fits in a message.
//! - *Printable*: no text has control characters, so that tools may print it and keep it
//!   in files of lines.
//! - *Whole or not at all*: a request that is refused has changed nothing.
//!
//! Lock order: [`Shell::with_links`] and [`Shell::each_lane`] are never nested, for a lane
//! comes before the links.
//!
//! # Not here
//! Who may ask (the shell says, [`Rights`]), the file of what survives a restart (the tools
//! write it, [`Record`] is a line of it), columns (`user/admin`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod bytes;
mod codec;
mod display;
mod record;
mod request;
mod restore;
mod serve;
#[cfg(test)]
mod tests;

pub use answer::{
    AddressError, Answer, DoorbellRow, DropRow, FilterRow, FlowRow, GroupRow, Kstat, KstatBlock,
    LinkRow, PropRow, Refusal, Statistics,
};
pub use bytes::{Malformed, TooLong};
pub use display::not_a;
pub use record::{BadField, NO_ROUTER, Record};
pub use request::{AddressOf, NewMac, NewVnic, Request, RouteOf, Setting};
pub use restore::{FILE_BYTES_MAX, LINES_MAX, restore};
pub use serve::{Rights, RingCounts, Shell, answer_to, serve};

/// Where the kernel listens.
pub const DEVICE: &str = "/dev/linkctl";
/// The file of what survives a restart, below the root.
pub const FILE: &str = "etc/dladm/datalink.conf";
/// Bytes of a request or an answer.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Bytes of a text: the longest is a list of 32 DHCP identities.
pub const TEXT_BYTES_MAX: usize = 9 << 10;
/// Links on a page.
pub const PAGE_LINKS: usize = 128;
/// Blocks of statistics on a page.
pub const PAGE_BLOCKS: usize = 64;
