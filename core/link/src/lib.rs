//! The MAC layer: rings, groups, flows, VNICs, VLANs, protection.
//!
//! # Problem
//! One card serves many programs, stacks and virtual machines, at a speed at which one
//! lock or one lookup too many is felt. Each of them sees a link of its own; none may
//! forge another's address; no frame may overtake another one of its flow; and whatever
//! arrives faster than it is taken must stay bounded and be dropped with a name.
//!
//! # Words
//! - A *ring* is a pair of queues of a card with an interrupt of its own
//!   (`hal::FramePort`); one CPU owns it.
//! - A *group* is a set of rings behind a set of address filters (`hal::NicControl`).
//! - A *chain* is a run of frames that moves in one call ([`FrameChain`]).
//! - A *bucket* is all flows whose hash ends alike: the unit of steering ([`rss`]).
//! - A *flow* is a rule of the administrator that gives some traffic its own limit and
//!   priority ([`flow`]).
//! - A *stream* is one user's hold on a link ([`open`]).
//! - A *soft ring* is where a ring's frames wait for another CPU ([`steer`]).
//!
//! # Idea
//! The card does what it can: filters spread addresses over groups ([`group`]), a hash
//! spreads flows over rings, and a ring that is alone with its address needs no
//! classification. What the card cannot, the ring's owner does with the same rules, so
//! that a lost filter or ring never loses a frame. A ring interrupts while its owner
//! keeps up and is polled while it does not ([`poll`]).
//!
//! What a client may claim to be is checked on its way out ([`protect`]); what it has set
//! is parsed once and then in range ([`props`]).
//!
//! # Ownership
//! What moves frames is owned by one CPU and takes `&mut self`: no locks, no shared
//! counters. What CPUs share is one atomic number each: how far a soft ring has come
//! ([`steer::Progress`]), when a bandwidth limit is paid off ([`bandwidth::Limit`]).
//! Control-plane operations (placing addresses, programming the card) are serial under
//! a lock of the shell.
//!
//! # Not here
//! Threads, interrupts, locks (the shell), protocols above (`inet`), cards (`drivers`),
//! names of files and system calls. The clock and randomness are arguments.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bandwidth;
mod chain;
pub mod counters;
pub mod fanout;
pub mod flow;
pub mod group;
mod headers;
pub mod moderation;
pub mod open;
pub mod poll;
pub mod prefix;
pub mod promisc;
pub mod props;
pub mod protect;
pub mod rss;
pub mod steer;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod toeplitz;
pub mod vlan;

pub use chain::{Frame, FrameChain, RxChain, TxChain};
pub use headers::{Header, Packet, Piece};
