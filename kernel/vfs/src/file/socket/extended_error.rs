//! What a socket's queue of errors says (MSG_ERRQUEUE).

use alloc::boxed::Box;
use core::net::IpAddr;

use mach::mem::fallible;
use sync::{Error, Result};

use super::Family;

/// One entry of the queue (Linux: `struct sock_extended_err`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtendedError {
    /// The socket's family, in whose words the program hears of it.
    pub family: Family,
    /// Who found out.
    pub origin: ErrorOrigin,
    /// What a call is told of it; `None` if nothing is wrong.
    pub error: Option<Error>,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code, or [`SENDS_COPIED`].
    pub code: u8,
    /// The size that fits, or the first send.
    pub info: u32,
    /// The last send.
    pub data: u32,
    /// Who sent the message.
    pub offender: Option<IpAddr>,
}

impl ExtendedError {
    /// Room for one, made before what it shall say is taken from a queue.
    ///
    /// Errors: `OutOfMemory`.
    pub fn room(family: Family) -> Result<Box<Self>> {
        let nothing = SendsOver {
            first: 0,
            last: 0,
            is_copied: false,
        };
        Ok(fallible::boxed(nothing.extended(family))?)
    }
}

/// Who found out; the numbers are Linux's own (SO_EE_ORIGIN_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorOrigin {
    /// Ourselves.
    Local = 1,
    /// An ICMP message.
    Icmp = 2,
    /// An ICMPv6 message.
    Icmpv6 = 3,
    /// No error: sends without a copy are over.
    ZeroCopy = 5,
}

/// The code of sends without a copy that were copied after all (SO_EE_CODE_ZEROCOPY_COPIED).
pub const SENDS_COPIED: u8 = 1;

/// Sends without a copy (MSG_ZEROCOPY) whose memory is the program's again, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendsOver {
    /// The first of them.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// They were copied after all.
    pub is_copied: bool,
}

impl SendsOver {
    /// What a socket of `family` says of them.
    pub fn extended(self, family: Family) -> ExtendedError {
        ExtendedError {
            family,
            origin: ErrorOrigin::ZeroCopy,
            error: None,
            kind: 0,
            code: u8::from(self.is_copied) * SENDS_COPIED,
            info: self.first,
            data: self.last,
            offender: None,
        }
    }
}
