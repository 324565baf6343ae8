//! POSIX' sockets and epoll sets over a queue that the program owns ([`sietch_io`]).
//!
//! # Problem
//! A program that was written for sockets names them by small numbers, copies bytes in and out when
//! it likes, and asks again and again what is ready, mixed with files that are the kernel's. A
//! [`Station`](sietch_io::Station) has one list of what happened, and hands out data once.
//!
//! # Idea
//! The bytes stay in the stack until they are read. For each socket an [`Open`] keeps what the stack says
//! is ready now: it is asked after each call on the socket, and after each turn in which something happened to
//! it. Epoll sets are those of the kernel (`core/epoll`), and watch `Open`s in place of the kernel's
//! files.
//!
//! A [`Host`] has all of it and no lock, makes no system call and never waits: a call that would says
//! [`Errno::AGAIN`], and who may wait does and calls again. So all is tried on a simulated wire
//! (`tests`), and `user/preload` has what is left: the C interface, the lock, the waiting.
//!
//! ```text
//! the program's call ─▶ preload ─ lock ─▶ Host ─▶ Table: number ─▶ Open ─▶ inet::Stack ─▶ rings
//! frames ─▶ Host::turn ─▶ inet::Stack ─▶ changed ─▶ Open: ready now ─▶ epoll::Set ─▶ the program
//! ```
//!
//! # When frames leave
//! A program that was told of several ready sockets answers them one after the other, so what it sends waits for
//! the last of these answers, or for the next time that it asks what is ready (`sending`). That is only done
//! while somebody looks after it ([`Host::watch`]).
//!
//! # Invariants
//! - An `Open` is in `opens` from its making until its last number is given back; its id is then dead.
//! - `Open::ready` is what the stack says, whenever no call is under way.
//!
//! # Not here
//! Raw sockets, IPv6, urgent data; who is told of an interrupted wait.
#![forbid(unsafe_code)]

mod ancillary;
mod checkpoint;
mod connect;
mod datagrams;
mod encoding;
mod errno;
mod events;
mod failure;
mod host;
mod inherit;
mod inherited_sockets;
mod look_pace;
mod names;
mod open;
mod options;
mod pace;
mod pieces;
mod published;
mod sending;
mod sets;
mod sharing;
mod stream;
mod table;
mod tcp_info;
pub mod uring;

pub use ancillary::{Heard, Messages, Wanted, own_of};
pub use checkpoint::{Numbered, Portable, Restored, WaitingDatagram};
pub use epoll::{Event, Events, Trigger, Watch};
pub use errno::{Errno, Result};
pub use failure::ExtendedError;
pub use host::{Host, Link};
pub use inet::stack_table::StackTable;
pub use inet::{Endpoint, SendOptions, Shutdown, State, TcpSnapshot, Transport};
pub use inherit::UnconnectedSocket;
pub use inherited_sockets::{InheritedSockets, Left};
pub use look_pace::{LookPace, look_after};
pub use open::{Direction, Named, Open};
pub use options::{OptionBytes, is_filter, is_made, is_streams_own};
pub use pace::Pace;
pub use pieces::{Gather, Scatter};
pub use published::{Counter, Shown};
pub use sending::LOOK_NANOS;
pub use sets::WatchSet;
pub use table::NUMBERS_MAX;
