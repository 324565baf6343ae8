//! The socket calls, for all families.
//!
//! `address` decodes names, `control` what travels beside the bytes, `option` the options;
//! `filter` the programs of SO_ATTACH_FILTER and its kin, `peer` what is told of a peer,
//! `interface` requests about interfaces;
//! `create`, `connect` and `transfer` hold the calls. Everything then goes through
//! [`kernel::socket::Socket`].

mod address;
pub mod connect;
mod control;
pub mod create;
mod filter;
pub mod header;
pub mod interface;
mod membership;
pub mod option;
mod option_value;
mod peer;
mod privilege;
pub mod transfer;

use kernel::error::{Error, Result};
use kernel::file::OpenFile;
use kernel::socket::Socket;

/// The socket that `open` is; ENOTSOCK otherwise.
fn socket_of(open: &OpenFile) -> Result<&dyn Socket> {
    open.file.as_socket().ok_or(Error::NotSocket)
}
