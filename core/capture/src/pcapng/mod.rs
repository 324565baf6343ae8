//! Files of packets that Wireshark reads (draft-ietf-opsawg-pcapng).
//!
//! A file is blocks in a row: one [`Block::Section`], then an [`Interface`] for each link, then
//! packets as they come, and [`Statistics`] at the end. A block is `type[4] length[4] body
//! length[4]`, in the byte order of who writes, padded to four bytes. Times are nanoseconds.

mod block;
mod options;

pub use block::{Block, Direction, Interface, NoRoom, Packet, Statistics};
