//! What MSG_ERRQUEUE shows of a UDP socket: datagrams that did not arrive (IP_RECVERR).

use base::Instant;
use inet::{Endpoint, Failure, FailureMessage};
use mm::io::Sink;
use sync::{Error, Result};

use super::{Heard, UdpSocket};
use crate::address::{from_endpoint, seen_by};
use net::refused;
use net::stack::env::Link;
use vfs::socket::{Control, ErrorOrigin, ExtendedError, Family, Received, ReceivedFlags};

impl UdpSocket {
    /// The next datagram that did not arrive: whom it was for, what is known of its bytes, and why.
    pub(crate) fn next_failure(&self, to: &mut Sink<'_>) -> Result<Received> {
        let family = self.handle.family;
        let mut told = ExtendedError::room(family)?;
        let (failure, interface) = self.take_failure()?;
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

/// The queue of a socket with members in several shards: they have parts of it, in order of time.
impl UdpSocket {
    fn take_failure(&self) -> Result<(Failure, u32)> {
        let take = |id, stack: &mut inet::Stack, link: &mut Link| {
            Ok((stack.take_failure(link, id)?, link.interface))
        };
        if self.handle.is_alone() {
            return self.handle.with(take);
        }
        let (shard, _) = self.first_failure()?.ok_or(Error::WouldBlock)?;
        let member = self.handle.member(shard);
        let taken = self
            .handle
            .stack
            .in_shard(member.shard, |stack, link| take(member.id, stack, link))?;
        self.pend_next(taken.0.message.is_some())?;
        Ok(taken)
    }

    /// The shard of the first failure of all, and whether a message told of it.
    fn first_failure(&self) -> Result<Option<(u16, bool)>> {
        let mut first: Option<(Instant, u16, bool)> = None;
        self.handle.with_all(|id, stack, link| {
            if let Some((at, is_told)) = stack.first_failure(id)
                && first.is_none_or(|(known, ..)| at < known)
            {
                first = Some((at, link.number, is_told));
            }
            Ok(())
        })?;
        Ok(first.map(|(_, shard, is_told)| (shard, is_told)))
    }

    /// Has the error of the next failure wait, in its member alone, if a message told of that. After
    /// one of which a message told, no other error does.
    fn pend_next(&self, was_told: bool) -> Result<()> {
        let next = self.first_failure()?.filter(|(_, is_told)| *is_told);
        if !was_told && next.is_none() {
            return Ok(());
        }
        self.handle.with_all(|id, stack, link| {
            let is_next = next.is_some_and(|(shard, _)| shard == link.number);
            Ok(stack.pend_failure(link, id, is_next)?)
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
