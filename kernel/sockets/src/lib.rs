//! What sockets of all address families share.
//!
//! The families (`unix`, `net`, `kernel-netlink`) implement the trait `Socket`, which lies with
//! files; here is what they do it with: the options that mean the same everywhere and the waits
//! that some of them bound ([`CommonOptions`]), buffers' limits, filters, who is at the other end,
//! datagrams that are given in pieces ([`cork`]), who looks on at packets ([`Listeners`]),
//! the memory of rings that programs see ([`ring_memory`]).
//! Not here: what may be asked of a socket (`vfs::socket`), and its layout in a program's memory
//! (`linux-net`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod common;
pub mod cork;
mod filter;
mod filter_facts;
mod held;
pub mod limits;
mod listeners;
mod peek;
mod peer;
pub mod ring_memory;
mod unix_facts;

pub use common::CommonOptions;
pub use filter::{Attached, SocketFilter};
pub use held::Held;
pub use listeners::Listeners;
pub use peek::PeekOffset;
pub use peer::{current_identity, process_of};
pub use unix_facts::{UnixFacts, UnixState, next_unix_socket, register_unix_sockets};
