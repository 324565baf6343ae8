//! What Intel's Gigabit cards share, from the 82540 on: rings of descriptors, filters for what
//! comes in, the link's state, statistics. What a driver does with a ring is here, what a
//! descriptor says is the driver's.
//!
//! # Problem
//! Keeping a card supplied with empty buffers, remembering which buffers it still reads, and
//! telling it in batches is the same for each of these cards, and easy to get wrong.
//!
//! # Idea
//! A ring lies in memory that both sides see. The driver moves a *tail*, the card follows
//! with its *head* and sets a bit, DD, in each descriptor that it is done with. The card owns
//! the descriptors from its head up to, not including, the tail; equal means that it owns
//! none, so one descriptor always stays free.
//!
//! ```text
//! RxRing   post ─▶ show (tail) ─▶ card fills ─▶ DD seen ─▶ RxFrame, an empty buffer posted
//! TxRing   push… close ─▶ kick (tail) ─▶ card reads ─▶ DD seen ─▶ buffers freed in order
//! ```
//!
//! # Invariants
//! - *No buffer without an owner*: a buffer that the card knows is kept until its DD bit is
//!   seen or the card has said that it stopped; if it never says so, it is leaked.
//! - *A receive ring never runs dry by itself*: a filled buffer is replaced before its frame
//!   goes up; without memory the frame is lost and its buffer goes back.
//! - *What the card says is checked*: slots are masked, lengths are compared with buffers.
//!
//! A queue that stands still (`hal::Watchdog`) is restarted: [`TxRing::restart`] and
//! [`RxRing::restart`] begin anew once the card has been stopped, and count what is lost.
//!
//! # Not here
//! Descriptors' bits ([`Format`], and the words that a driver pushes), interrupts, enabling
//! queues. Virtqueues are rings of another kind: `core/virtq`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod filters;
pub mod link;
mod ring;
mod rx;
pub mod statistics;
mod tx;

pub use ring::{Ring, SLOTS, Words};
pub use rx::{FRAME_BYTES_MAX, Filled, Format, RxRing};
pub use tx::TxRing;
