//! What MSG_ERRQUEUE shows of a UDP socket: datagrams that did not arrive (IP_RECVERR).

use inet::{Endpoint, Failure, FailureMessage};
use mm::io::Sink;
use sync::Result;

use super::{Heard, UdpSocket};
use crate::address::{from_endpoint, seen_by};
use net::refused;
use vfs::socket::{Control, ErrorOrigin, ExtendedError, Family, Received, ReceivedFlags};

impl UdpSocket {
    /// The next datagram that did not arrive: whom it was for, what is known of its bytes, and why.
    pub(crate) fn next_failure(&self, to: &mut Sink<'_>) -> Result<Received> {
        let family = self.handle.family;
        let mut told = ExtendedError::room(family)?;
        let (failure, interface) = self
            .handle
            .first_of(self.handle.stack.own_for_loopback(), |id, stack, link| {
                Ok((stack.take_failure(link, id)?, link.interface))
            })?;
        *told = extended(&failure, family);
        let copied = to.put_whole(&failure.payload)?;
        let heard = failure.message.map(|message| heard_of(message, interface));
        let control = heard.map(|heard| self.reports.of(family, &heard));
        let length = failure.payload.len();
        let cut = match copied < length {
            true => ReceivedFlags::TRUNC,
            false => ReceivedFlags::empty(),
        };
        Ok(Received {
            bytes: copied,
            length,
            from: Some(from_endpoint(&self.handle, failure.to)),
            control: Control {
                error: Some(told),
                ..control.unwrap_or_default()
            },
            flags: ReceivedFlags::ERRQUEUE | cut,
        })
    }
}

/// What the headers of the message said.
fn heard_of(message: FailureMessage, interface: u32) -> Heard {
    Heard {
        from: Endpoint::new(message.from, 0),
        to: Endpoint::new(message.to, 0),
        interface,
        hop_limit: message.hop_limit,
        tos: message.tos,
        segment_bytes: 0,
        drops: 0,
    }
}

/// How a program with a socket of `family` sees a failure.
fn extended(failure: &Failure, family: Family) -> ExtendedError {
    let message = failure.message;
    ExtendedError {
        family,
        origin: match message {
            None => ErrorOrigin::Local,
            Some(message) if message.from.is_ipv4() => ErrorOrigin::Icmp,
            Some(_) => ErrorOrigin::Icmpv6,
        },
        error: Some(refused(failure.error)),
        kind: message.map_or(0, |message| message.kind),
        code: message.map_or(0, |message| message.code),
        info: failure.detail,
        data: 0,
        offender: message.map(|message| seen_by(family, message.from)),
    }
}
