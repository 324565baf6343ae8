//! What answers are made of: messages in a datagram, and the reasons of a refusal.

use alloc::vec::Vec;

use netlink::{Emit, NoRoom, ParseError, Writer};
use sync::Error;

use mach::mem::fallible::TryGrow;

/// Room for one object, the largest of which has less than half of it.
const OBJECT_BYTES: usize = 4096;

/// Why a request is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    /// The reason.
    pub error: Error,
    /// The same for a person.
    pub text: Option<&'static str>,
    /// Where in the message the attribute lies that is to blame.
    pub offset: Option<usize>,
}

impl Refusal {
    /// A reason with words.
    pub fn new(error: Error, text: &'static str) -> Self {
        Self {
            error,
            text: Some(text),
            offset: None,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            error,
            text: None,
            offset: None,
        }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        let offset = match error {
            ParseError::Attribute { offset, .. } => Some(offset),
            _ => None,
        };
        let error = match error {
            ParseError::Truncated { .. } | ParseError::Attribute { .. } => Error::Invalid,
            ParseError::Kind(_) => Error::Unsupported,
            ParseError::Family(_) => Error::NotFound,
        };
        Self {
            error,
            text: None,
            offset,
        }
    }
}

/// A datagram of at most `room` bytes that `write` writes.
pub(super) fn datagram(
    room: usize,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), NoRoom>,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    bytes.make_room(room).map_err(|_| Error::NoBuffers)?;
    bytes.resize(room, 0);
    let mut writer = Writer::new(&mut bytes);
    write(&mut writer).map_err(|NoRoom| Error::MessageTooLong)?;
    let len = writer.len();
    bytes.truncate(len);
    Ok(bytes)
}

/// An object as the only message of a datagram.
pub(super) fn object(object: &impl Emit, sequence: u32, port: u32) -> Result<Vec<u8>, Error> {
    datagram(OBJECT_BYTES, |to| object.answer(sequence, port, to))
}
