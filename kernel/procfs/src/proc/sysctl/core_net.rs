//! `net.core`: what programs may ask for in any family.

use core::fmt::Write;
use core::sync::atomic::Ordering;

use super::form::{self, INT_MAX, cell, number};
use vfs::pseudo::Entry;

use sockets::limits;

const RECEIVE_MIN: u64 = limits::RECEIVE_MIN as u64;
const SEND_MIN: u64 = limits::SEND_MIN as u64;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    cell!("core/somaxconn", 0..=INT_MAX, limits::BACKLOG),
    cell!(
        "core/rmem_max",
        RECEIVE_MIN..=INT_MAX,
        limits::RECEIVE_BUFFER
    ),
    cell!("core/wmem_max", SEND_MIN..=INT_MAX, limits::SEND_BUFFER),
    number!(
        "core/rmem_default",
        RECEIVE_MIN..=INT_MAX,
        datagram.recv_buffer
    ),
    number!(
        "core/wmem_default",
        SEND_MIN..=INT_MAX,
        datagram.send_buffer
    ),
    number!("core/netdev_max_backlog", 1..=INT_MAX, loopback_packets_max),
];
