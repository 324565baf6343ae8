//! Tags: which request is under way, and whether a reply answers it.

use alloc::boxed::Box;
use alloc::vec;

use fields::Reader;

use crate::REPLY_HEADER_BYTES;
use crate::body::Shape;
use crate::reply::Reply;
use crate::request::Call;

/// Names a request under way; below the client's number of slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(u16);

impl Tag {
    /// The number as an array index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The largest number of an error (Linux's MAX_ERRNO).
const ERROR_MAX: i32 = 4095;

/// Why a request was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// As many requests are under way as there are tags: try again after a completion.
    Busy,
    /// The request, or the reply that it asks for, does not fit, or a name in it is none.
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
    /// It answers a request of this number, and not this one.
    WrongRequest(u64),
    /// Its error is no number of an error.
    BadError(i32),
    /// Its body is malformed, or brings more than was asked for.
    BadBody,
    /// The channel broke before the reply came.
    Broken,
}

#[derive(Clone, Copy)]
struct Pending {
    unique: u64,
    shape: Shape,
    limit: usize,
}

/// The requests under way.
pub struct Client {
    pending: Box<[Option<Pending>]>,
    /// The number of the next request; none is used twice.
    next: u64,
}

impl Client {
    /// A client with `tags` requests under way at most.
    pub fn new(tags: u16) -> Self {
        Self {
            pending: vec![None; usize::from(tags)].into_boxed_slice(),
            // Interrupts have odd numbers, of which we send none.
            next: 2,
        }
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    /// Takes a tag for `call` and writes the message into `to`; returns its bytes.
    pub fn begin(&mut self, call: &Call<'_>, to: &mut [u8]) -> Result<(Tag, usize), SubmitError> {
        let mut slots = self.pending.iter_mut().enumerate();
        let free = slots.find(|(_, slot)| slot.is_none());
        let (index, slot) = free.ok_or(SubmitError::Busy)?;
        let bytes = call.encode(self.next, to).ok_or(SubmitError::TooLarge)?;
        *slot = Some(Pending {
            unique: self.next,
            shape: call.request.shape(),
            limit: call.request.limit(),
        });
        self.next += 2;
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
        let pending = slot.ok_or(ReplyError::NotAsked)?;
        if pending.shape == Shape::Silence {
            return Ok(Reply::Done);
        }
        let (error, body) = split(message, pending.unique)?;
        match error {
            0 => Reply::decode(pending.shape, pending.limit, body).ok_or(ReplyError::BadBody),
            error if (-ERROR_MAX..0).contains(&error) => Ok(Reply::Error(error.unsigned_abs())),
            error => Err(ReplyError::BadError(error)),
        }
    }
}

/// How many bytes a reply with this header says that it has.
pub fn reply_bytes(header: &[u8; REPLY_HEADER_BYTES]) -> usize {
    Reader::new(header).u32().unwrap_or(0) as usize
}

/// The error and the body of a message.
fn split(message: &[u8], wanted: u64) -> Result<(i32, &[u8]), ReplyError> {
    let from = &mut Reader::new(message);
    let mut header = || Some((from.u32()? as usize, from.u32()?, from.u64()?));
    let (len, error, unique) = header().ok_or(ReplyError::Truncated)?;
    if unique != wanted {
        return Err(ReplyError::WrongRequest(unique));
    }
    let body = message.get(REPLY_HEADER_BYTES..len);
    Ok((error.cast_signed(), body.ok_or(ReplyError::Truncated)?))
}
