//! Messages into a buffer of a fixed size, each whole or not at all.

use crate::attribute;
use crate::message::{HEADER_BYTES, Header};

/// The buffer has no room for the message; it is as it was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// Appends messages to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the buffer's first byte.
    pub fn new(to: &'a mut [u8]) -> Self {
        Self { to, len: 0 }
    }

    /// Bytes of all messages so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a message; `write` writes what is behind the header.
    pub fn message(&mut self, header: Header, write: impl FnOnce(&mut Body)) -> Result<(), NoRoom> {
        let mut body = Body {
            to: &mut self.to[self.len..],
            len: 0,
            fits: true,
        };
        body.u32(0).u16(header.kind).u16(header.flags.0);
        body.u32(header.sequence).u32(header.port);
        write(&mut body);
        let len = body.len;
        body.pad();
        let padded = body.len;
        let size = u32::try_from(len).map_err(|_| NoRoom)?;
        body.patch(0, &size.to_le_bytes());
        if !body.fits {
            return Err(NoRoom);
        }
        self.len += padded;
        Ok(())
    }
}

/// What is behind a message's header. Running over the end is remembered.
#[derive(Debug)]
pub struct Body<'a> {
    to: &'a mut [u8],
    len: usize,
    fits: bool,
}

impl Body<'_> {
    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let rest = self.to.get_mut(self.len..).unwrap_or_default();
        match rest.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.fits = false,
        }
        self
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Zeros up to the next multiple of four.
    fn pad(&mut self) {
        let padding = self.len.next_multiple_of(4) - self.len;
        self.bytes(&[0; 3][..padding]);
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        let room = self.to.get_mut(at..).unwrap_or_default();
        match room.get_mut(..bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.fits = false,
        }
    }

    /// An attribute whose value `write` writes; more than 64 KiB do not fit in any buffer.
    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.pad();
        let start = self.len;
        self.u16(0).u16(kind);
        write(self);
        self.set_len(start);
        self.pad();
        self
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts into the two bytes at `start` how many there are from there.
    pub(crate) fn set_len(&mut self, start: usize) {
        match u16::try_from(self.len - start) {
            Ok(len) => self.patch(start, &len.to_le_bytes()),
            Err(_) => self.fits = false,
        }
    }

    /// An attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.nested(kind, |body| {
            body.bytes(value);
        })
    }

    /// An attribute, if there is a value.
    pub fn optional(&mut self, kind: u16, value: Option<impl AsRef<[u8]>>) -> &mut Self {
        if let Some(value) = value {
            self.attribute(kind, value.as_ref());
        }
        self
    }

    /// A number of four bytes, if there is one.
    pub fn optional_u32(&mut self, kind: u16, value: Option<u32>) -> &mut Self {
        self.optional(kind, value.map(u32::to_le_bytes))
    }

    /// A number of one byte, if there is one.
    pub fn optional_u8(&mut self, kind: u16, value: Option<u8>) -> &mut Self {
        self.optional(kind, value.map(u8::to_le_bytes))
    }

    /// Numbers of four bytes each, if there are any.
    pub fn optional_words(&mut self, kind: u16, words: Option<impl AsRef<[u32]>>) -> &mut Self {
        if let Some(words) = words {
            self.nested(kind, |body| {
                for word in words.as_ref() {
                    body.u32(*word);
                }
            });
        }
        self
    }

    /// A name with a zero at its end, if there is one.
    pub fn optional_text(&mut self, kind: u16, text: Option<&[u8]>) -> &mut Self {
        if let Some(text) = text {
            self.nested(kind, |body| {
                body.bytes(text).u8(0);
            });
        }
        self
    }
}

const _: () = assert!(
    HEADER_BYTES.is_multiple_of(4) && attribute::HEADER_BYTES == 4,
    "padding counts from the message"
);
