//! Raw sockets: packets with their IP header, as programs write and read them (raw(7)).
//!
//! Not here: who is shown which packet (`stack::raw_listener`).

mod options;
mod put;
mod send;
pub(crate) mod socket;
