//! Why a datagram did not arrive, as a control message tells it (IP_RECVERR; ip(7)).

use std::net::IpAddr;

use inet::Failure;

use crate::ancillary::socket_name;
use crate::errno::Errno;

/// SO_EE_ORIGIN_LOCAL, SO_EE_ORIGIN_ICMP (`linux/errqueue.h`).
const ORIGIN_LOCAL: u8 = 1;
const ORIGIN_ICMP: u8 = 2;
/// Bytes of a `struct sock_extended_err`, and of it with the name of who said so.
const ERROR_BYTES: usize = 16;
const BYTES: usize = ERROR_BYTES + 16;

/// A `struct sock_extended_err`, and the name of who said so: an address, or nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtendedError {
    pub(crate) bytes: [u8; BYTES],
    /// A message told of it, whose headers can be told as well.
    pub(crate) is_from_network: bool,
}

impl ExtendedError {
    pub(crate) fn of(failure: &Failure) -> Self {
        let mut bytes = [0; BYTES];
        let (error, offender) = bytes.split_at_mut(ERROR_BYTES);
        let number = Errno::from(failure.error).number();
        error[..4].copy_from_slice(&number.to_ne_bytes());
        error[8..12].copy_from_slice(&failure.detail.to_ne_bytes());
        error[4] = ORIGIN_LOCAL;
        if let Some(message) = failure.message {
            error[4..7].copy_from_slice(&[ORIGIN_ICMP, message.kind, message.code]);
            if let IpAddr::V4(host) = message.from.to_canonical() {
                offender.copy_from_slice(&socket_name(host, 0));
            }
        }
        Self {
            bytes,
            is_from_network: failure.message.is_some(),
        }
    }
}
