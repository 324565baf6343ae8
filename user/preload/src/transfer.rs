//! Bytes to and from sockets of ours, as calls' flags say.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::ptr;

use posix::{
    Direction, Errno, Events, ExtendedError, Gather, Heard, Host, Link, Open, Result, Scatter,
    SendOptions, Transport, Wanted,
};

use crate::blocking::{Way, patiently};
use crate::next;
use crate::numbers::{Whose, whose};
use crate::sockets::is_left_for_peer;

/// What a receiving call tells.
pub struct Received {
    /// What it returns.
    pub count: usize,
    /// What is told of a datagram.
    pub heard: Option<Heard>,
    /// What else its receiver wants to be told; `None` if the kernel has to be asked.
    pub wanted: Option<Wanted>,
    /// MSG_TRUNC, if not all of it fitted; MSG_ERRQUEUE of one that did not arrive.
    pub flags: c_int,
    /// Why it did not.
    pub failure: Option<ExtendedError>,
}

impl Received {
    fn stream(count: usize) -> Self {
        Self {
            count,
            heard: None,
            wanted: None,
            flags: 0,
            failure: None,
        }
    }
}

#[inline]
pub fn is_ours(number: c_int) -> bool {
    matches!(whose(number), Whose::Socket | Whose::Parent)
}

/// Whether a datagram socket was shut down, and the call would wait for ever.
fn is_over(open: &Open, way: Way) -> bool {
    open.ready().contains(Events::RDHUP) && may_wait(open, way)
}

/// Whether a call may wait.
fn may_wait(open: &Open, way: Way) -> bool {
    !open.is_nonblocking() && !way.is_impatient
}

#[cold]
fn peek_what_waits(number: c_int, to: &mut Scatter<'_, '_>) -> Result<Option<Heard>> {
    let way = Way::of(Direction::Receive, libc::MSG_DONTWAIT);
    patiently(number, way, |host, open| host.peek(open, to).map(|()| None))
}

/// Whether bytes of a stream are thrown away (MSG_TRUNC).
fn is_unseen(flags: c_int) -> bool {
    const OTHERS: c_int = libc::MSG_PEEK | libc::MSG_OOB | libc::MSG_ERRQUEUE;
    flags & (libc::MSG_TRUNC | OTHERS) == libc::MSG_TRUNC
}

/// Throws bytes of a stream away, `max` at most, if that is what the call wants: its memory is not touched, and
/// need not be any.
pub fn throw_away(number: c_int, max: usize, flags: c_int) -> Option<Result<usize>> {
    if !is_unseen(flags) || max == 0 {
        return None;
    }
    let (mut to, way) = (Scatter::unseen(max), Way::of(Direction::Receive, flags));
    let thrown = patiently(number, way, |host, open| match open.transport() {
        Transport::Tcp => take(host, open, &mut to, flags).map(Some),
        Transport::Udp => Ok(None),
    });
    match thrown.transpose()? {
        // The error is for the next call.
        Err(error) if to.done() == 0 => Some(Err(error)),
        _ => Some(Ok(to.done())),
    }
}

/// Takes bytes of a stream until the call has enough.
#[inline(always)]
fn take<L: Link>(
    host: &mut Host<L>,
    open: &Open,
    to: &mut Scatter<'_, '_>,
    flags: c_int,
) -> Result<()> {
    match flags & libc::MSG_WAITALL != 0 {
        true => host.take_all(open, to),
        false => host.take_enough(open, to),
    }
}

/// Receives as the flags say. Inlined, for `read` has none: what is asked of them here is not asked there.
#[inline(always)]
pub fn receive(number: c_int, pieces: &mut [IoSliceMut<'_>], flags: c_int) -> Result<Received> {
    if flags & libc::MSG_OOB != 0 {
        return Err(Errno::INVALID);
    }
    if flags & libc::MSG_ERRQUEUE != 0 {
        return receive_failure(number, pieces);
    }
    let (mut to, mut wanted, mut is_short) = (Scatter::new(pieces), None, false);
    let way = Way::of(Direction::Receive, flags);
    let taken = patiently(number, way, |host, open| match open.transport() {
        Transport::Tcp if to.room() == 0 => Ok(None),
        Transport::Tcp if flags & libc::MSG_PEEK != 0 => {
            is_short = may_wait(open, way)
                && host
                    .check_enough(open, to.room(), flags & libc::MSG_WAITALL != 0)
                    .is_err();
            match is_short {
                true => Err(Errno::AGAIN),
                false => host.peek(open, &mut to).map(|()| None),
            }
        }
        Transport::Tcp => {
            if is_unseen(flags) {
                to.throw_away();
            }
            take(host, open, &mut to, flags).map(|()| None)
        }
        Transport::Udp if flags & libc::MSG_PEEK != 0 => {
            host.peek_datagram(open, &mut to).map(Some)
        }
        Transport::Udp => {
            wanted = open.wanted();
            match host.take_datagram(open, &mut to) {
                // Nothing more will come, for who would wait.
                Err(Errno::AGAIN) if is_over(open, way) => Ok(None),
                taken => taken.map(Some),
            }
        }
    });
    let taken = match taken {
        // In the end it has what there is.
        Err(error @ (Errno::AGAIN | Errno::INTERRUPTED)) if is_short => {
            peek_what_waits(number, &mut to).map_err(|_| error)
        }
        taken => taken,
    };
    let done = to.done();
    match taken {
        Ok(None) => Ok(Received::stream(done)),
        Ok(Some(heard)) => Ok(Received {
            count: if flags & libc::MSG_TRUNC != 0 {
                heard.len
            } else {
                done
            },
            heard: Some(heard),
            wanted,
            flags: if heard.len > done { libc::MSG_TRUNC } else { 0 },
            failure: None,
        }),
        // The error is for the next call.
        Err(_) if done != 0 => Ok(Received::stream(done)),
        Err(error) => Err(error),
    }
}

/// The next datagram that did not arrive; nobody waits for one.
#[cold]
fn receive_failure(number: c_int, pieces: &mut [IoSliceMut<'_>]) -> Result<Received> {
    let mut to = Scatter::new(pieces);
    let mut wanted = None;
    let way = Way::of(Direction::Receive, libc::MSG_DONTWAIT);
    let (heard, failure) = patiently(number, way, |host, open| match open.transport() {
        Transport::Tcp => Err(Errno::AGAIN),
        Transport::Udp => {
            wanted = open.wanted();
            host.take_failure(open, &mut to)
        }
    })?;
    let done = to.done();
    let cut = if heard.len > done { libc::MSG_TRUNC } else { 0 };
    Ok(Received {
        count: done,
        heard: Some(heard),
        wanted,
        flags: libc::MSG_ERRQUEUE | cut,
        failure: Some(failure),
    })
}

/// Sends; `None` if the socket has become the kernel's for this peer. Inlined as [`receive`] is.
#[inline(always)]
pub fn send(
    number: c_int,
    pieces: &[IoSlice<'_>],
    flags: c_int,
    own: SendOptions,
) -> Result<Option<usize>> {
    if flags & libc::MSG_OOB != 0 {
        return Err(Errno::NOT_SUPPORTED);
    }
    if let Some(peer) = own.to
        && let IpAddr::V4(host) = peer.addr
        && is_left_for_peer(number, (host, peer.port))?
    {
        return Ok(None);
    }
    let mut from = Gather::new(pieces);
    let way = Way::of(Direction::Send, flags);
    let sent = patiently(number, way, |host, open| match open.transport() {
        Transport::Tcp => host.put(open, &mut from),
        // Pieces of a datagram are not gathered; a socket without a peer hears of that first.
        Transport::Udp
            if flags & libc::MSG_MORE != 0 && (own.to.is_some() || open.is_settled()) =>
        {
            Err(Errno::NOT_SUPPORTED)
        }
        Transport::Udp => host.put_datagram(open, &mut from, own),
    });
    match sent {
        Err(error) if from.done() == 0 => Err(error),
        // A call that may wait sends all.
        Err(Errno::MOVED) => Ok(Some(from.done() + send_rest(number, &mut from, flags))),
        _ => Ok(Some(from.done())),
    }
}

/// The program's sockets went over to a newer library in the middle of a call, which goes on there; how many bytes
/// more were sent.
#[cold]
fn send_rest(number: c_int, from: &mut Gather<'_, '_>, flags: c_int) -> usize {
    let mut rest = vec![0; from.left()];
    from.take(&mut rest);
    let (at, len) = (rest.as_ptr().cast(), rest.len());
    // SAFETY: the bytes are ours, and as many as is said.
    let sent = unsafe { next::sendto.get()(number, at, len, flags, ptr::null(), 0) };
    // What is wrong is for the next call.
    usize::try_from(sent).unwrap_or(0)
}
