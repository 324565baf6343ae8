//! What `ss` shows: sockets, those of IP and those of Unix.

pub(crate) mod inet;
pub(crate) mod unix;
