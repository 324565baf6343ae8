//! Netlink: the messages by which `ip` and `ss` configure and ask a kernel.
//!
//! # Problem
//! A program writes messages into a socket: a header, a structure of the family's own, and
//! attributes of which any may be missing, doubled, unknown or too short. It gets answers of
//! the same shape: one message, an acknowledgement, or a *dump* of thousands of objects that
//! must not be held in memory at once.
//!
//! # Idea
//! - [`Messages`] and [`Attributes`] are views that walk the bytes. [`Request::parse`] and
//!   [`DiagRequest::parse`] make typed commands of them; after that nobody looks at bytes.
//! - [`Link`], [`Address`], [`Route`], [`Neighbour`] and [`Rule`] are the objects, the same type
//!   in a command and in an answer, for the kernel's answer to "show" is the command that
//!   would make the object. [`DiagSocket`] and [`UnixSocket`] are sockets as `ss` is told of
//!   them, [`DiagFilter`] the little program by which it selects some.
//! - [`Writer`] appends whole messages to a buffer, or nothing. [`Dump`] fills one buffer after
//!   the other with what fits, from wherever the caller's cursor stands.
//!
//! # Invariants
//! - **Whole:** a buffer holds complete messages only, whatever did not fit.
//! - **Bounded:** parsing takes one pass over the bytes; an object borrows, it allocates nothing.
//!
//! Unknown attributes are passed over, as Linux does for programs that did not ask for strict
//! checks, and the first is named ([`Request::unread`]); of an attribute that comes twice the last one counts.
//!
//! Sources: RFC 3549; `linux/{netlink,rtnetlink,if_link,if_addr,neighbour,fib_rules}.h`,
//! `linux/{sock_diag,inet_diag,unix_diag}.h`. Numbers are little-endian but where a protocol's own are
//! meant (ports, addresses).
//! Not here: sockets, groups, policy; numbers of errors (an [`Ack`] takes Linux's own), names of
//! objects to numbers.
#![no_std]
#![forbid(unsafe_code)]

mod ack;
mod address;
mod attribute;
mod diag;
mod diag_filter;
mod diag_socket;
mod dump;
mod fields;
mod ip;
mod link;
mod message;
mod neighbour;
mod nexthop;
mod parse;
mod request;
mod route;
mod rule;
mod unix_diag;
mod writer;

pub use ack::Ack;
pub use address::Address;
pub use attribute::{Attribute, Attributes};
pub use diag::{DiagRequest, SocketId};
pub use diag_filter::{Candidate, DiagFilter, FILTER_BYTES_MAX};
pub use diag_socket::DiagSocket;
pub use dump::{Dump, Emit, Progress};
pub use link::{Link, Statistics};
pub use message::{Flags, HEADER_BYTES, Header, Message, Messages};
pub use neighbour::Neighbour;
pub use nexthop::{Nexthop, Nexthops};
pub use request::{Object, Request, Verb};
pub use route::Route;
pub use rule::Rule;
pub use unix_diag::{UnixRequest, UnixSocket};
pub use writer::{Body, NoRoom, Writer};

/// Why a message is not a command. Offsets count from the message's first byte, as an
/// extended acknowledgement reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The family's structure is not whole.
    Truncated {
        /// Bytes behind the header.
        has: usize,
        /// Bytes that the structure has.
        needs: usize,
    },
    /// An attribute's value has a length or content that its type does not allow.
    Attribute {
        /// Its type.
        kind: u16,
        /// Where it lies.
        offset: usize,
    },
    /// A message type that is not of these families.
    Kind(u16),
    /// An address family that the message is not for.
    Family(u8),
}
