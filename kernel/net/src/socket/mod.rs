//! What the sockets of all protocols share: a program's hold on one, its name and its members in
//! the shards, options, groups, addresses as programs write them.
//!
//! Not here: what a protocol does (`tcp`, `udp`, `raw`), and who waits (`stack::waiter`).

pub(crate) mod address;
pub(crate) mod bound_device;
pub(crate) mod dial;
pub(crate) mod groups;
pub(crate) mod handle;
pub(crate) mod ioctl;
mod latecomer;
mod members;
pub(crate) mod options;
mod port_rights;
