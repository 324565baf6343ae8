//! Linux's calls on files, directories and mounts, and on many files at once.
//!
//! Here a call becomes an operation of an open file or a name (`vfs::file`, `vfs`);
//! `poll`, `select` and `epoll` wait for several. Sockets are files for these calls like any
//! other; what only they know is in `linux_net`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod aio;
pub mod async_io;
mod attributes;
mod dir;
mod epoll;
mod fcntl;
mod inotify;
mod lock;
mod mount;
mod open;
mod poll;
mod read_write;
mod select;
mod sendfile;
mod splice;
mod stat;
mod sync;
mod xattr;

use linux_abi::Entry;

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[
    aio::CALLS,
    attributes::CALLS,
    dir::CALLS,
    epoll::CALLS,
    fcntl::CALLS,
    inotify::CALLS,
    lock::CALLS,
    mount::CALLS,
    mount::configure::CALLS,
    mount::report::CALLS,
    mount::tree::CALLS,
    open::CALLS,
    poll::CALLS,
    read_write::CALLS,
    select::CALLS,
    sendfile::CALLS,
    splice::CALLS,
    stat::CALLS,
    sync::CALLS,
    xattr::CALLS,
];
