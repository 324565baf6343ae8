//! Tags: which request is under way, and whether a reply answers it.

use crate::HEADER_BYTES;
use crate::reply::{self, Reply};
use crate::request::{Kind, Request};
use alloc::boxed::Box;
use alloc::vec;
use fields::Reader;

/// Names a request under way; below the client's number of slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(u16);

impl Tag {
    /// The number as an array index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The tag of `Version`, which opens the conversation.
const NO_TAG: u16 = 0xffff;

/// Why a request was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// As many requests are under way as there are tags: try again after a completion.
    Busy,
    /// The request, or the reply that it asks for, does not fit into a message.
    TooLarge,
    /// The channel broke; nothing will be answered any more.
    Broken,
    /// No memory for the message.
    NoMemory,
}

/// How a server broke the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyError {
    /// No request with this tag is under way.
    NotAsked,
    /// The message is shorter than it says, or than a header.
    Truncated,
    /// It carries another tag than the request.
    WrongTag(u16),
    /// It answers another type of request.
    WrongType(u8),
    /// Its body is malformed, or brings more than was asked for.
    BadBody(Kind),
    /// The channel broke before the reply came.
    Broken,
}

#[derive(Clone, Copy)]
struct Pending {
    kind: Kind,
    limit: u32,
}

/// The requests under way.
pub struct Client {
    pending: Box<[Option<Pending>]>,
    msize: usize,
}

impl Client {
    /// A client with `tags` requests under way at most and messages of
    /// `msize` bytes.
    pub fn new(tags: u16, msize: usize) -> Self {
        Self {
            pending: vec![None; usize::from(tags)].into_boxed_slice(),
            msize,
        }
    }

    /// The largest message, in bytes.
    pub fn msize(&self) -> usize {
        self.msize
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    /// Takes a tag for `request` and writes the message into `to`; returns its bytes.
    pub fn begin(
        &mut self,
        request: &Request<'_>,
        to: &mut [u8],
    ) -> Result<(Tag, usize), SubmitError> {
        let index = self
            .pending
            .iter()
            .position(Option::is_none)
            .ok_or(SubmitError::Busy)?;
        let kind = request.kind();
        let tag = if kind == Kind::Version {
            NO_TAG
        } else {
            index as u16
        };
        let room = to.len().min(self.msize);
        let room = to.get_mut(..room).ok_or(SubmitError::TooLarge)?;
        let bytes = request.encode(tag, room).ok_or(SubmitError::TooLarge)?;
        if request.reply_bytes() + HEADER_BYTES + size_of::<u32>() > self.msize {
            return Err(SubmitError::TooLarge);
        }
        self.pending[index] = Some(Pending {
            kind,
            limit: request.limit(),
        });
        Ok((Tag(index as u16), bytes))
    }

    /// Takes back a tag whose message was not sent after all.
    pub fn cancel(&mut self, tag: Tag) {
        if let Some(slot) = self.pending.get_mut(tag.index()) {
            *slot = None;
        }
    }

    /// Decodes the reply to `tag`, which is free again afterwards, whatever came.
    pub fn finish<'a>(&mut self, tag: Tag, message: &'a [u8]) -> Result<Reply<'a>, ReplyError> {
        let slot = self.pending.get_mut(tag.index()).and_then(Option::take);
        let Pending { kind, limit } = slot.ok_or(ReplyError::NotAsked)?;
        let wire_tag = if kind == Kind::Version { NO_TAG } else { tag.0 };
        let (answer, body) = split(message, wire_tag)?;
        if answer == reply::ERROR {
            return Reply::decode_error(body).ok_or(ReplyError::BadBody(kind));
        }
        if answer != kind as u8 + 1 {
            return Err(ReplyError::WrongType(answer));
        }
        Reply::decode(kind, limit, body).ok_or(ReplyError::BadBody(kind))
    }
}

/// The type and body of a message.
fn split(message: &[u8], wanted: u16) -> Result<(u8, &[u8]), ReplyError> {
    let from = &mut Reader::new(message);
    let mut header = || Some((from.u32()? as usize, from.u8()?, from.u16()?));
    let (size, kind, tag) = header().ok_or(ReplyError::Truncated)?;
    if tag != wanted {
        return Err(ReplyError::WrongTag(tag));
    }
    let body = message
        .get(HEADER_BYTES..size)
        .ok_or(ReplyError::Truncated)?;
    Ok((kind, body))
}
