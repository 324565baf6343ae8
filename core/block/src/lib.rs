//! Block devices: what is asked of them, and what may be believed afterwards.
//!
//! # Problem
//! A disk takes requests of bounded size and shape, finishes them in any order, keeps what it
//! was given in a cache that forgets it when the power fails, and sometimes does not answer at all.
//! Programs ask for any number of bytes, in memory that lies anywhere, and rely on what was
//! flushed.
//!
//! # Idea
//! - A [`Request`] is what somebody waits for, with the memory that it moves ([`hal::Span`]s) and
//!   whatever keeps that memory alive; it is handed back when the device is done with it and not
//!   before. A [`Command`] is what a device is told: [`split`] cuts requests into commands that keep
//!   to the device's [`Limits`].
//! - A [`Queue`] has requests on the way to one queue of a device. The thread that asks sends by
//!   itself; who takes completions hands out what is finished. No thread stands between.
//! - Order is a type ([`order`]): a completed write is [`Written`], and the only ways to something
//!   [`Durable`] are a write that was forced, and a flush that was *sent after* the write was
//!   complete and has succeeded.
//! - A device that does not answer is stopped and started anew ([`Control`]); what was under way is sent
//!   again a few times, and then fails. What the device itself calls an error is never tried again.
//!
//! # Invariants
//! - **Held**: a request's memory is dropped only when all its commands are complete, or the device
//!   has been stopped.
//! - **Once**: each request that was taken is handed back exactly once.
//! - **Covered**: a [`Flushed`] covers only writes that were complete when the flush was sent, and none from
//!   before a flush that failed.
//!
//! Clock: an argument. Not here: who waits (the kernel), partitions, caches, merging of different
//! requests: those that wait for their completion never have a neighbour to merge with.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod counters;
mod limits;
pub mod order;
mod question;
mod queue;
mod request;
pub mod sim;
pub mod split;

pub use channel::{
    Broken, Channel, ChannelBox, Command, Control, Parts, SubmitError, Tag, Verdict,
};
pub use counters::{Counters, Kind, Tally};
pub use limits::{Bulk, Cache, Limits};
pub use order::{Durable, Flushed, Order, Written};
pub use question::{Question, Reply};
pub use queue::{Admitted, Queue, REQUESTS_MAX, RETRIES_MAX, TIMEOUT};
pub use request::{
    Completion, Done, Durability, Failure, Keep, Operation, PageEnd, Request, SectorRange, Sectors,
    Sink,
};

/// What disks count in, whatever the size of their blocks.
pub const SECTOR_BYTES: u64 = 512;
