//! All sockets and sets of a program go over to a newer library, while their peers wait for a moment.
//!
//! # Problem
//! A program's stack is replaced while it serves. Peers must not notice, the program neither; the newer library may
//! know other structures than the older one; and if it cannot have everything, the older one must go on as
//! if nothing had been.
//!
//! # Idea
//! What the older host has is copied as a value ([`Checkpoint`], bytes behind a version): nothing of it changes by that. The
//! newer one opens a queue of its own on the same link, before, and makes the same under the same numbers. Only when all
//! is there does the older one end, without a word to peers. So a failure at any step needs no undoing.
//!
//! The link gives frames of connections to the older queue until that is closed (`docs/rings.md`: it is the elder),
//! and from then on to the newer one. What lies in the older queue's ring goes over as frames
//! ([`Host::take_frames`], [`Host::hear`]): a peer whose segment was lost would wait for its timer, which
//! is a fifth of a second and more.
//!
//! `records` has what is written, `save` writes it, `restore` reads it. `moving` does it with one connection, which goes
//! to another process, `shifting` with one that goes to another queue of the program's own, `portable` with a socket that goes to the
//! kernel's stack.
//!
//! # Invariants
//! - Nothing is believed: what [`Host::restore`] is given may come from anybody. Numbers of sockets and sets
//!   are checked by who knows the system's.
//! - A host that has restored has sent nothing before [`Host::flush`].
//!
//! # Not here
//! Connections that are being made by peers ([`Host::half_open`]: wait for them); those that the program is
//! making are asked for again. Datagrams that wait to be read are lost.

mod backlog;
mod moving;
mod portable;
mod records;
mod restore;
mod save;
mod shifting;
mod waiting;

pub use moving::Numbered;
pub use portable::Portable;
pub use records::Restored;
pub(crate) use records::{Checkpoint, FORMAT, Member, SetRecord, SocketRecord, SocketState};
pub use waiting::WaitingDatagram;
