//! The MAC layer: rings, groups, flows, VNICs, VLANs, protection.
//!
//! # Problem
//! One card serves many programs, stacks and virtual machines, at a speed at which one
//! lock or one lookup too many is felt. Each of them sees a link of its own; none may
//! forge another's address; no frame may overtake another one of its flow; and whatever
//! arrives faster than it is taken must stay bounded and be dropped with a name.
//!
//! # Words
//! - A *link* is what a name stands for: a card's own, an etherstub, a VNIC, a VLAN.
//! - A *port* is a link that others are over: a card's own, or an etherstub, which has
//!   no wire. A *client* is a link as its port sees it; the port's own link is one too.
//! - A *ring* is a pair of queues of a card with an interrupt of its own
//!   (`hal::FramePort`). A *group* is rings behind address filters (`hal::NicControl`).
//! - A *lane* is a ring with all that its owner does ([`lane`]).
//! - A *chain* is a run of frames that moves in one call ([`FrameChain`]).
//! - A *bucket* is all flows whose hash ends alike: the unit of steering ([`rss`]). A
//!   *soft ring* is where a ring's frames wait for another CPU ([`steer`]).
//! - A *flow* is a rule of the administrator that gives some traffic its own limit and
//!   priority ([`flow`]). (Where order is meant, a flow is a connection.)
//! - A *queue* of a link is one program's part of its received frames ([`queues`]).
//! - A *stream* is one user's hold on a link ([`open`]).
//!
//! # Idea
//! The card does what it can: filters spread addresses over groups ([`group`]), a hash
//! spreads flows over rings. What the card cannot, the ring's owner does with the same
//! rules, so that a lost filter or ring never loses a frame. A ring interrupts while its
//! owner keeps up and is polled while it does not ([`poll`]). What a client may claim to
//! be is checked on its way out ([`protect`]).
//!
//! # Ownership
//! A lane is owned by one CPU and takes `&mut self`: no locks, no shared counters. What
//! lanes share is an immutable [`Table`], replaced as a whole, and one atomic number
//! each: a port's [`Generation`], how far a soft ring has come ([`steer::Progress`]),
//! when a bandwidth limit is paid off ([`bandwidth::Limit`]). All that changes tables is
//! the control plane, [`Links`], behind one lock of the shell.
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
pub mod cpus;
pub mod dispatch;
pub mod elastic;
pub mod fanout;
pub mod filters;
pub mod flow;
pub mod group;
mod headers;
pub mod lane;
pub mod links;
pub mod moderation;
pub mod open;
pub mod poll;
pub mod prefix;
pub mod promisc;
pub mod props;
pub mod protect;
pub mod queues;
pub mod reception;
pub mod round;
pub mod rss;
mod shaper;
mod slots;
pub mod steer;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod toeplitz;
pub mod tx_batch;
pub mod tx_queue;
pub mod vlan;

pub use chain::{Frame, FrameChain, RxChain, TxChain};
pub use headers::{Header, Packet, Piece};
pub use lane::{Env, Lane, Outlook};
pub use links::Links;
pub use table::{Generation, LinkId, StreamId, Table};
