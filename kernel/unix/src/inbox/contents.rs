//! What a socket has received, under the inbox's lock.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use super::urgent::Urgent;
use super::{Ancillary, Reading, ReceiveMode};
use crate::outbox::Charge;
use crate::rights::Rights;
use mach::mem::fallible::{self, Heap};
use mm::io::Sink;
use pipe::ByteRing;
use sockets::Attached;
use sync::{Error, Result};
use vfs::socket::{Control, PeerCredentials, Received, ReceivedFlags, SocketAddress};

/// Pages of the ring at first: Linux's default send buffer.
const PAGES: usize = 52;

/// What comes with a stretch of bytes, and where these begin and end.
pub(super) struct Segment {
    start: u64,
    end: u64,
    ancillary: Ancillary,
    /// Somebody looked at it.
    was_seen: bool,
    /// Of a message: what its sender is charged.
    charge: Option<Charge>,
}

impl Segment {
    pub(super) fn new(bytes: Range<u64>, ancillary: Ancillary, charge: Option<Charge>) -> Self {
        Self {
            start: bytes.start,
            end: bytes.end,
            ancillary,
            was_seen: false,
            charge,
        }
    }

    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it is one by itself, not a stretch of a stream.
    pub(super) fn is_message(&self) -> bool {
        self.charge.is_some()
    }
}

pub(super) struct Contents {
    pub(super) ring: ByteRing<Heap>,
    pub(super) segments: VecDeque<Segment>,
    pub(super) urgent: Urgent,
    /// Who sent the bytes of the stream that come next.
    stream_credentials: Option<PeerCredentials>,
}

impl Contents {
    pub(super) fn new() -> Self {
        Self {
            ring: ByteRing::new(PAGES),
            segments: VecDeque::new(),
            urgent: Urgent::default(),
            stream_credentials: None,
        }
    }

    /// Leaves as much of the message that starts at `start`, the last one, as `filter` wants;
    /// `None` if that is nothing.
    pub(super) fn keep_last(&mut self, filter: &Attached, start: u64) -> Result<Option<usize>> {
        let len = (self.ring.tail() - start) as usize;
        let parts = fallible::collected(self.ring.pieces(start));
        let wanted = parts.map(|parts: Vec<&[u8]>| filter.keep_of_message(&parts));
        let kept = wanted.as_ref().map_or(0, |wanted| len.min(*wanted));
        self.ring.take_back(len - kept);
        Ok((wanted? != 0).then_some(kept))
    }

    /// Whether what comes with them differs from that of the bytes before.
    pub(super) fn is_news(&self, ancillary: &Ancillary) -> bool {
        let last = match self.segments.back() {
            Some(segment) => segment.ancillary.credentials,
            None => self.stream_credentials,
        };
        ancillary.rights.is_some() || ancillary.credentials != last
    }

    /// Drops the next `count` bytes of a stream, and what came with them: returns descriptors.
    pub(super) fn pass(&mut self, count: usize) -> Option<Rights> {
        let end = self.ring.head().saturating_add(count as u64);
        self.ring.skip(count);
        self.urgent.pass(self.ring.head());
        let mut rights = None;
        while let Some(segment) = self.segments.pop_front_if(|segment| segment.start < end) {
            self.stream_credentials = segment.ancillary.credentials;
            rights = segment.ancillary.rights.or(rights);
        }
        rights
    }

    pub(super) fn take_stretch(
        &mut self,
        to: &mut Sink<'_>,
        how: Reading,
    ) -> Result<Option<Received>> {
        let left_out = self.urgent.left_out(self.ring.head(), how.is_inline);
        match how.taking {
            ReceiveMode::Remove => {
                self.pass(left_out);
                self.remove_stretch(to, how)
            }
            ReceiveMode::Peek(skip) => self.peek_stretch(left_out + skip.unwrap_or(0), to, how),
        }
    }

    fn remove_stretch(&mut self, to: &mut Sink<'_>, how: Reading) -> Result<Option<Received>> {
        if self.ring.is_empty() {
            return Ok(None);
        }
        let (credentials, limit) = self.stretch(self.ring.head(), how.by_sender);
        let count = self.ring.peek(0, to, limit)?;
        let mut received = Received::stream(count);
        received.control.credentials = credentials;
        if let Some(rights) = self.pass(count) {
            received.control.files = rights.open();
        }
        Ok(Some(received))
    }

    /// Looks at what lies behind `skip` bytes.
    fn peek_stretch(
        &self,
        skip: usize,
        to: &mut Sink<'_>,
        how: Reading,
    ) -> Result<Option<Received>> {
        if skip >= self.ring.len() {
            return Ok(None);
        }
        let start = self.ring.head() + skip as u64;
        let (credentials, limit) = self.stretch(start, how.by_sender);
        let count = self.ring.peek(skip, to, limit)?;
        let mut received = Received::stream(count);
        received.control.credentials = credentials;
        let end = start + count as u64;
        let seen = |segment: &&Segment| segment.start < end && segment.end > start;
        let rights = self.segments.iter().filter(seen);
        let rights = rights.filter_map(|segment| segment.ancillary.rights.as_ref());
        received.control.files = fallible::collected(rights.flat_map(Rights::peek))?;
        Ok(Some(received))
    }

    /// Who sent the bytes from `start` on, and how many one read takes: up to bytes of
    /// another sender where that counts, no further than a message with descriptors reaches, and
    /// not beyond an urgent one.
    fn stretch(&self, start: u64, by_sender: bool) -> (Option<PeerCredentials>, usize) {
        let mut credentials = self.stream_credentials;
        let mut limit = self.urgent.stretch(start);
        for segment in &self.segments {
            if segment.start <= start {
                credentials = segment.ancillary.credentials;
            } else if by_sender && segment.ancillary.credentials != credentials {
                limit = limit.min((segment.start - start) as usize);
                break;
            }
            if segment.ancillary.rights.is_some() && segment.end > start {
                limit = limit.min((segment.end - start) as usize);
                break;
            }
        }
        (credentials, limit)
    }

    pub(super) fn take_urgent(&mut self, to: &mut Sink<'_>, how: ReceiveMode) -> Result<Received> {
        let position = self.urgent.byte().ok_or(Error::Invalid)?;
        let head = self.ring.head();
        let count = self.ring.peek((position - head) as usize, to, 1)?;
        let mut received = Received::stream(count);
        received.flags = ReceivedFlags::OOB;
        if how == ReceiveMode::Remove && self.urgent.received(head)? {
            self.pass(1);
        }
        Ok(received)
    }

    /// The message that a receiver gets, and how many bytes of it are left out.
    fn choose(&self, how: ReceiveMode) -> Option<(usize, usize)> {
        let ReceiveMode::Peek(Some(mut skip)) = how else {
            return (!self.segments.is_empty()).then_some((0, 0));
        };
        for (index, segment) in self.segments.iter().enumerate() {
            let is_passed = skip >= segment.len() && (skip != 0 || segment.was_seen);
            if !is_passed {
                return Some((index, skip));
            }
            skip -= segment.len();
        }
        None
    }

    pub(super) fn take_message(
        &mut self,
        to: &mut Sink<'_>,
        how: ReceiveMode,
    ) -> Result<Option<Received>> {
        let chosen = self.choose(how);
        let Some((index, skip)) = chosen else {
            return Ok(None);
        };
        let Some(segment) = self.segments.get_mut(index) else {
            return Ok(None);
        };
        let length = segment.len() - skip;
        let wanted = length.min(to.remaining());
        let before = (segment.start - self.ring.head()) as usize + skip;
        let bytes = self.ring.peek(before, to, length)?;
        if bytes < wanted {
            return Err(Error::BadAddress);
        }
        let mut received = Received {
            bytes,
            length,
            from: segment.ancillary.from.clone().map(SocketAddress::Unix),
            control: Control::default(),
            flags: ReceivedFlags::empty(),
        };
        received.flags.set(ReceivedFlags::TRUNC, bytes < length);
        if how != ReceiveMode::Remove {
            segment.was_seen = true;
            received.control = segment.ancillary.peek();
            return Ok(Some(received));
        }
        self.ring.skip(length);
        if let Some(segment) = self.segments.pop_front() {
            received.control = segment.ancillary.open();
        }
        Ok(Some(received))
    }
}
