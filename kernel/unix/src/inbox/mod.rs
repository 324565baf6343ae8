//! What a socket has received and its program has not taken yet.
//!
//! Bytes lie in a ring; beside them, an [`Ancillary`] for each message, or in a stream for
//! each stretch with other circumstances. Sizes are copied into atomics under the lock,
//! for who polls or decides whether to wait. How much may lie here is said by who sends
//! (`outbox`); the ring grows to that. What is taken of it says `contents`, which bytes of a
//! stream are urgent `urgent`.

mod ancillary;
mod contents;
mod urgent;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::drops::{self, DropReason};
use crate::outbox::Charge;
pub(super) use ancillary::{Ancillary, tell_credentials};
use contents::{Contents, Segment};
use mach::mem::fallible::TryGrow;
use mm::io::{Sink, Source};
use sockets::{PeekOffset, SocketFilter};
use sync::{Error, Mutex, Result};
use vfs::socket::{MessageFlags, Received};

/// Changes of circumstances in a stream, so that what comes with bytes is bounded too.
const CHANGES_MAX: usize = 4096;

/// Whether received bytes stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiveMode {
    Remove,
    /// They do, and so many before them are left out (SO_PEEK_OFF); `None` if that is off.
    Peek(Option<usize>),
}

impl ReceiveMode {
    /// What a receiver with these flags wants.
    pub(super) fn of(flags: MessageFlags, offset: &PeekOffset) -> Self {
        match flags.contains(MessageFlags::PEEK) {
            true => Self::Peek(offset.skip(flags)),
            false => Self::Remove,
        }
    }
}

/// How a receiver reads a stream.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) taking: ReceiveMode,
    /// Bytes of several senders do not pass together: it wants to know of whom they are.
    pub(super) by_sender: bool,
    /// It takes urgent bytes as any other (SO_OOBINLINE).
    pub(super) is_inline: bool,
}

/// A receive queue.
pub(super) struct Inbox {
    /// The number of the socket that receives here.
    owner: u64,
    contents: Mutex<Contents>,
    len: AtomicUsize,
    messages: AtomicUsize,
    has_urgent: AtomicBool,
}

impl Inbox {
    /// An empty one of the socket with this number.
    pub(super) fn new(owner: u64) -> Self {
        Self {
            owner,
            contents: Mutex::new(Contents::new()),
            len: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
            has_urgent: AtomicBool::new(false),
        }
    }

    /// Bytes in it.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    /// Messages in it; for a stream, changes of circumstances.
    pub(super) fn messages(&self) -> usize {
        self.messages.load(Ordering::SeqCst)
    }

    /// How much is in it, to see whether that has changed.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.len(), self.messages())
    }

    /// Whether an urgent byte of a stream was not received.
    pub(super) fn has_urgent(&self) -> bool {
        self.has_urgent.load(Ordering::SeqCst)
    }

    /// Whether a stream's sender can be told apart from those before.
    pub(super) fn has_place(&self) -> bool {
        self.messages() < CHANGES_MAX
    }

    fn publish(&self, contents: &Contents) {
        self.len.store(contents.ring.len(), Ordering::SeqCst);
        self.messages
            .store(contents.segments.len(), Ordering::SeqCst);
        self.has_urgent
            .store(contents.urgent.byte().is_some(), Ordering::SeqCst);
    }

    /// Puts a stretch of a stream in: as much as fits into `limit` bytes, maybe nothing. What
    /// comes with them is taken with the first byte; with `OOB` the last byte of all is urgent.
    pub(super) fn put_stretch(
        &self,
        from: &mut Source<'_>,
        ancillary: &mut Ancillary,
        limit: usize,
        flags: MessageFlags,
    ) -> Result<usize> {
        let mut contents = self.contents.lock();
        let len = contents.ring.len();
        if len >= limit || len != 0 && contents.segments.len() >= CHANGES_MAX {
            return Ok(0);
        }
        contents.segments.make_room(1)?;
        let wanted = from.remaining().min(limit - len);
        contents.ring.grow(len + wanted)?;
        let start = contents.ring.tail();
        let count = contents.ring.put(from, wanted)?;
        if count != 0 && contents.is_news(ancillary) {
            let mut ancillary = core::mem::take(ancillary);
            ancillary.lie_with(self.owner);
            let end = start + count as u64;
            contents
                .segments
                .push_back(Segment::new(start..end, ancillary, None));
        }
        let is_last = count != 0 && from.remaining() == 0;
        if is_last && flags.contains(MessageFlags::OOB) {
            let last = contents.ring.tail() - 1;
            contents.urgent.mark(last);
        }
        self.publish(&contents);
        Ok(count)
    }

    /// Puts a whole message in, which its sender is charged; or as much of it as `filter` wants,
    /// of which a sender does not hear.
    pub(super) fn put_message(
        &self,
        from: &mut Source<'_>,
        mut ancillary: Ancillary,
        charge: Charge,
        filter: &SocketFilter,
    ) -> Result<usize> {
        let mut contents = self.contents.lock();
        let size = from.remaining();
        contents.segments.make_room(1)?;
        let needed = contents.ring.len() + size;
        contents.ring.grow(needed)?;
        let start = contents.ring.tail();
        let count = contents.ring.put(from, size)?;
        if count < size {
            contents.ring.take_back(count);
            return Err(Error::BadAddress);
        }
        let kept = match filter.attached() {
            None => Some(count),
            Some(filter) => contents.keep_last(&filter, start)?,
        };
        let Some(kept) = kept else {
            drops::count(DropReason::Filtered);
            return Ok(count);
        };
        ancillary.lie_with(self.owner);
        let range = start..start + kept as u64;
        contents
            .segments
            .push_back(Segment::new(range, ancillary, Some(charge)));
        self.publish(&contents);
        Ok(count)
    }

    /// Length of the first message; 0 without one.
    pub(super) fn first_length(&self) -> usize {
        let contents = self.contents.lock();
        contents.segments.front().map_or(0, Segment::len)
    }

    /// Bytes of a stream that can be received.
    pub(super) fn unread(&self) -> usize {
        let contents = self.contents.lock();
        contents.ring.len() - contents.urgent.holes()
    }

    /// Whether the next byte of a stream is urgent, or was.
    pub(super) fn is_at_mark(&self) -> bool {
        let contents = self.contents.lock();
        contents.urgent.is_next(contents.ring.head())
    }

    /// Takes a stretch of a stream; `None` if there is none.
    pub(super) fn take_stretch(&self, to: &mut Sink<'_>, how: Reading) -> Result<Option<Received>> {
        let mut contents = self.contents.lock();
        let received = contents.take_stretch(to, how);
        self.publish(&contents);
        received
    }

    /// Takes the urgent byte ahead of its turn.
    ///
    /// Errors: `Invalid` if there is none.
    pub(super) fn take_urgent(&self, to: &mut Sink<'_>, how: ReceiveMode) -> Result<Received> {
        let mut contents = self.contents.lock();
        let received = contents.take_urgent(to, how);
        self.publish(&contents);
        received
    }

    /// Takes a message; what does not fit in `to` is lost. `None` if there is none.
    pub(super) fn take_message(
        &self,
        to: &mut Sink<'_>,
        how: ReceiveMode,
    ) -> Result<Option<Received>> {
        let mut contents = self.contents.lock();
        let received = contents.take_message(to, how)?;
        self.publish(&contents);
        Ok(received)
    }

    /// Throws everything away; whether there was something to receive.
    pub(super) fn clear(&self) -> bool {
        let mut contents = self.contents.lock();
        let unread = contents.ring.len() - contents.urgent.holes();
        let segments = core::mem::take(&mut contents.segments);
        contents.pass(usize::MAX);
        self.publish(&contents);
        drop(contents);
        segments.iter().any(Segment::is_message) || unread != 0
    }
}
