//! The socket calls of Linux, for all families of addresses.
//!
//! `address` decodes names, `control` what travels beside the bytes, `option` the options;
//! `filter` the programs of SO_ATTACH_FILTER and its kin, `peer` what is told of a peer,
//! `interface` requests about interfaces, `arp` about stations;
//! `create`, `connect` and `transfer` hold the calls. Everything then goes through
//! [`vfs::socket::Socket`]. The messages of netlink are the kernel's: they arrive through
//! these calls as bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address;
mod arp;
pub mod connect;
mod control;
mod create;
mod filter;
pub mod header;
pub mod interface;
mod membership;
mod option;
mod option_value;
mod peer;
mod privilege;
mod transfer;

use linux_abi::Entry;
use sync::{Error, Result};
use vfs::file::OpenFile;
use vfs::socket::Socket;

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[
    connect::CALLS,
    create::CALLS,
    header::CALLS,
    option::CALLS,
    transfer::CALLS,
];

/// The socket that `open` is; ENOTSOCK otherwise.
fn socket_of(open: &OpenFile) -> Result<&dyn Socket> {
    open.file.as_socket().ok_or(Error::NotSocket)
}
