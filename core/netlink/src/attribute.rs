//! Attributes (`struct nlattr`): `len[2] type[2] value`, padded to four bytes.
//!
//! Two bits of the type say "nested" and "network order"; the type decides anyway.

use crate::ParseError;
use crate::fields::u16_at;

pub(crate) const HEADER_BYTES: usize = 4;
const KIND_MASK: u16 = 0x3fff;

/// One attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attribute<'a> {
    /// What it is, by the structure that it follows.
    pub kind: u16,
    /// The bytes, without padding.
    pub value: &'a [u8],
    /// Where it starts, from the message's first byte.
    pub offset: usize,
}

impl<'a> Attribute<'a> {
    /// That the value is not what its type wants.
    pub fn error(&self) -> ParseError {
        ParseError::Attribute {
            kind: self.kind,
            offset: self.offset,
        }
    }

    /// A value of so many bytes; Linux lets longer ones pass, and so do we.
    pub fn array<const N: usize>(&self) -> Result<[u8; N], ParseError> {
        self.value.first_chunk().copied().ok_or(self.error())
    }

    /// One byte.
    pub fn u8(&self) -> Result<u8, ParseError> {
        self.array().map(u8::from_le_bytes)
    }

    /// Two bytes.
    pub fn u16(&self) -> Result<u16, ParseError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&self) -> Result<u32, ParseError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Numbers of four bytes each, from the start.
    pub(crate) fn words<const N: usize>(&self) -> Result<[u32; N], ParseError> {
        let (words, _) = self.value.as_chunks();
        let words: &[[u8; 4]; N] = words.first_chunk().ok_or(self.error())?;
        Ok(words.map(u32::from_le_bytes))
    }

    /// A name of at most `max` bytes; the zero at its end is optional, as in Linux.
    pub fn text(&self, max: usize) -> Result<&'a [u8], ParseError> {
        let text = self.value.split(|&byte| byte == 0).next();
        text.filter(|text| text.len() <= max).ok_or(self.error())
    }

    /// At most `max` bytes.
    pub fn bytes(&self, max: usize) -> Result<&'a [u8], ParseError> {
        let fits = self.value.len() <= max;
        fits.then_some(self.value).ok_or(self.error())
    }

    /// The attributes in it.
    pub fn nested(&self) -> Attributes<'a> {
        Attributes::new(self.value, self.offset + HEADER_BYTES)
    }
}

/// Attributes in a row. An impossible length ends them.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Attributes<'a> {
    /// Those in `bytes`, which start at `offset` of their message.
    pub(crate) fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let len = usize::from(u16_at(self.rest, 0));
        let attribute = Attribute {
            kind: u16_at(self.rest, 2) & KIND_MASK,
            value: self.rest.get(HEADER_BYTES..len)?,
            offset: self.offset,
        };
        let step = len.next_multiple_of(4);
        self.rest = self.rest.get(step..).unwrap_or_default();
        self.offset += step;
        Some(attribute)
    }
}
