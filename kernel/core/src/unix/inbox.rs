//! What a socket has received and its program has not taken yet.
//!
//! Bytes lie in a ring; beside them, an [`Envelope`] for each message, or in a stream for
//! each stretch with other circumstances. Sizes are copied into atomics under the lock,
//! for who polls or decides whether to wait. How much may lie here is said by who sends
//! (`outbox`); the ring grows to that.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::caller;
use super::outbox::Charge;
use super::rights::Rights;
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::ipc::ring::ByteRing;
use crate::packet::{self, DropReason};
use crate::socket::{
    Attached, Control, MessageFlags, PeerCredentials, Received, ReceivedFlags, SocketAddress,
    SocketFilter, UnixAddress,
};
use crate::sync::Mutex;
use mach::mem::fallible::{self, TryGrow};

/// Pages of the ring at first: Linux' default send buffer.
const PAGES: usize = 52;
/// Changes of circumstances in a stream, so that their envelopes are bounded too.
const CHANGES_MAX: usize = 4096;

/// What comes with bytes.
#[derive(Default)]
pub(super) struct Envelope {
    pub(super) from: Option<UnixAddress>,
    pub(super) credentials: Option<PeerCredentials>,
    pub(super) rights: Option<Rights>,
}

/// An envelope, and where its bytes begin and end.
struct Letter {
    start: u64,
    end: u64,
    envelope: Envelope,
    /// Of a message: what its sender is charged.
    _charge: Option<Charge>,
}

/// Whether received bytes stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taking {
    Remove,
    Peek,
}

impl Taking {
    /// What a receiver with these flags wants.
    pub(super) fn of(flags: MessageFlags) -> Self {
        match flags.contains(MessageFlags::PEEK) {
            true => Self::Peek,
            false => Self::Remove,
        }
    }
}

struct Contents {
    ring: ByteRing,
    letters: VecDeque<Letter>,
    /// Who sent the bytes of the stream that come next.
    stream_credentials: Option<PeerCredentials>,
}

/// A receive queue.
pub(super) struct Inbox {
    /// The number of the socket that receives here.
    owner: u64,
    contents: Mutex<Contents>,
    len: AtomicUsize,
    messages: AtomicUsize,
}

impl Inbox {
    /// An empty one of the socket with this number.
    pub(super) fn new(owner: u64) -> Self {
        let contents = Contents {
            ring: ByteRing::new(PAGES),
            letters: VecDeque::new(),
            stream_credentials: None,
        };
        Self {
            owner,
            contents: Mutex::new(contents),
            len: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
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

    /// Whether a stream's sender can be told apart from those before.
    pub(super) fn has_place(&self) -> bool {
        self.messages() < CHANGES_MAX
    }

    fn publish(&self, contents: &Contents) {
        self.len.store(contents.ring.len(), Ordering::SeqCst);
        self.messages
            .store(contents.letters.len(), Ordering::SeqCst);
    }

    /// Puts a stretch of a stream in: as much as fits into `limit` bytes, maybe nothing. The
    /// envelope is taken with the first byte.
    pub(super) fn put_stretch(
        &self,
        from: &mut Source<'_>,
        envelope: &mut Envelope,
        limit: usize,
    ) -> Result<usize> {
        let mut contents = self.contents.lock();
        let len = contents.ring.len();
        if len >= limit || len != 0 && contents.letters.len() >= CHANGES_MAX {
            return Ok(0);
        }
        contents.letters.make_room(1)?;
        let wanted = from.remaining().min(limit - len);
        contents.ring.grow(len + wanted)?;
        let start = contents.ring.tail();
        let count = contents.ring.put(from, wanted)?;
        if count != 0 && contents.is_news(envelope) {
            let mut envelope = core::mem::take(envelope);
            envelope.lie_with(self.owner);
            let end = start + count as u64;
            contents.letters.push_back(Letter {
                start,
                end,
                envelope,
                _charge: None,
            });
        }
        self.publish(&contents);
        Ok(count)
    }

    /// Puts a whole message in, which its sender is charged; or as much of it as `filter` wants,
    /// of which a sender does not hear.
    pub(super) fn put_message(
        &self,
        from: &mut Source<'_>,
        mut envelope: Envelope,
        charge: Charge,
        filter: &SocketFilter,
    ) -> Result<usize> {
        let mut contents = self.contents.lock();
        let size = from.remaining();
        contents.letters.make_room(1)?;
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
            packet::count(DropReason::UnixFiltered);
            return Ok(count);
        };
        envelope.lie_with(self.owner);
        let letter = Letter {
            start,
            end: start + kept as u64,
            envelope,
            _charge: Some(charge),
        };
        contents.letters.push_back(letter);
        self.publish(&contents);
        Ok(count)
    }

    /// Length of the first message; 0 without one.
    pub(super) fn first_length(&self) -> usize {
        let contents = self.contents.lock();
        contents
            .letters
            .front()
            .map_or(0, |letter| (letter.end - letter.start) as usize)
    }

    /// Takes a stretch of a stream; `None` if there is none. Bytes of several senders pass
    /// together unless `by_sender`, who wants to know of whom they are.
    pub(super) fn take_stretch(
        &self,
        to: &mut Sink<'_>,
        how: Taking,
        by_sender: bool,
    ) -> Result<Option<Received>> {
        let mut contents = self.contents.lock();
        if contents.ring.is_empty() {
            return Ok(None);
        }
        let received = contents.take_stretch(to, how, by_sender)?;
        self.publish(&contents);
        Ok(Some(received))
    }

    /// Takes a message; what does not fit in `to` is lost. `None` if there is none.
    pub(super) fn take_message(&self, to: &mut Sink<'_>, how: Taking) -> Result<Option<Received>> {
        let mut contents = self.contents.lock();
        if contents.letters.is_empty() {
            return Ok(None);
        }
        let received = contents.take_message(to, how)?;
        self.publish(&contents);
        Ok(Some(received))
    }

    /// Throws everything away; whether there was something.
    pub(super) fn clear(&self) -> bool {
        let mut contents = self.contents.lock();
        let letters = core::mem::take(&mut contents.letters);
        let was_used = !letters.is_empty() || !contents.ring.is_empty();
        contents.ring.skip(usize::MAX);
        self.publish(&contents);
        drop(contents);
        drop(letters);
        was_used
    }
}

impl Contents {
    /// Leaves as much of the message that starts at `start`, the last one, as `filter` wants;
    /// `None` if that is nothing.
    fn keep_last(&mut self, filter: &Attached, start: u64) -> Result<Option<usize>> {
        let len = (self.ring.tail() - start) as usize;
        let parts = fallible::collected(self.ring.pieces(start));
        let wanted = parts.map(|parts: Vec<&[u8]>| filter.keep_of_message(&parts));
        let kept = wanted.as_ref().map_or(0, |wanted| len.min(*wanted));
        self.ring.take_back(len - kept);
        Ok((wanted? != 0).then_some(kept))
    }

    /// Whether the envelope differs from that of the bytes before.
    fn is_news(&self, envelope: &Envelope) -> bool {
        let last = match self.letters.back() {
            Some(letter) => letter.envelope.credentials,
            None => self.stream_credentials,
        };
        envelope.rights.is_some() || envelope.credentials != last
    }

    fn take_stretch(
        &mut self,
        to: &mut Sink<'_>,
        how: Taking,
        by_sender: bool,
    ) -> Result<Received> {
        let head = self.ring.head();
        let (credentials, limit) = self.stretch(head, by_sender);
        let count = self.ring.peek(0, to, limit)?;
        let mut received = Received::stream(count);
        received.control.credentials = credentials;
        let end = head + count as u64;
        if how == Taking::Peek {
            let passed = self.letters.iter().take_while(|letter| letter.start < end);
            let rights = passed.filter_map(|letter| letter.envelope.rights.as_ref());
            received.control.files = fallible::collected(rights.flat_map(Rights::peek))?;
            return Ok(received);
        }
        self.ring.skip(count);
        while let Some(letter) = self.letters.pop_front_if(|letter| letter.start < end) {
            self.stream_credentials = letter.envelope.credentials;
            if let Some(rights) = letter.envelope.rights {
                received.control.files = rights.open();
            }
        }
        Ok(received)
    }

    /// Who sent the bytes from `head` on, and how many one read takes: up to bytes of
    /// another sender where that counts, and no further than a message with descriptors reaches.
    fn stretch(&self, head: u64, by_sender: bool) -> (Option<PeerCredentials>, usize) {
        let mut credentials = self.stream_credentials;
        for letter in &self.letters {
            if letter.start == head {
                credentials = letter.envelope.credentials;
            } else if by_sender && letter.envelope.credentials != credentials {
                return (credentials, (letter.start - head) as usize);
            }
            if letter.envelope.rights.is_some() {
                return (credentials, (letter.end - head) as usize);
            }
        }
        (credentials, usize::MAX)
    }

    fn take_message(&mut self, to: &mut Sink<'_>, how: Taking) -> Result<Received> {
        let Some(letter) = self.letters.front() else {
            return Err(Error::WouldBlock);
        };
        let length = (letter.end - letter.start) as usize;
        let wanted = length.min(to.remaining());
        let bytes = self.ring.peek(0, to, length)?;
        if bytes < wanted {
            return Err(Error::BadAddress);
        }
        let from = letter.envelope.from.clone().map(SocketAddress::Unix);
        let cut = if bytes < length {
            ReceivedFlags::TRUNC
        } else {
            ReceivedFlags::empty()
        };
        let mut received = Received {
            bytes,
            length,
            from,
            control: Control::default(),
            flags: cut,
        };
        if how == Taking::Peek {
            received.control = letter.envelope.peek();
            return Ok(received);
        }
        self.ring.skip(length);
        if let Some(letter) = self.letters.pop_front() {
            received.control = letter.envelope.open();
        }
        Ok(received)
    }
}

impl Envelope {
    /// Without a name: what `control` gives, and who calls if the receiver wants to know.
    pub(super) fn new(control: Control, is_wanted: bool) -> Result<Self> {
        let rights = match control.files.is_empty() {
            true => None,
            false => Some(Rights::new(control.files)?),
        };
        Ok(Self {
            from: None,
            credentials: control.credentials.or_else(|| is_wanted.then(caller)),
            rights,
        })
    }

    /// It lies in the queue of the socket `owner` now.
    fn lie_with(&mut self, owner: u64) {
        if let Some(rights) = &mut self.rights {
            rights.put(owner);
        }
    }

    fn open(self) -> Control {
        let files = self.rights.map(Rights::open).unwrap_or_default();
        Control {
            files,
            credentials: self.credentials,
            ..Control::default()
        }
    }

    fn peek(&self) -> Control {
        let files = self.rights.as_ref().map(Rights::peek).unwrap_or_default();
        Control {
            files,
            credentials: self.credentials,
            ..Control::default()
        }
    }
}
