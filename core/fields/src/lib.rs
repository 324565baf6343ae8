//! Little-endian fields of messages, bounded on both sides: what the protocols of folders
//! (9P, FUSE) are made of.
//!
//! A [`Writer`] never writes beyond its buffer and says at the end whether all had room; a
//! [`Reader`] never reads beyond the message, whatever its counts say.
//!
//! Not here: which fields a message has (`ninep`, `fuse`).
#![no_std]
#![forbid(unsafe_code)]

/// Writes fields into a message. Running over the end is remembered, so that it needs
/// one check at the end.
pub struct Writer<'a> {
    to: &'a mut [u8],
    len: usize,
    fits: bool,
}

impl<'a> Writer<'a> {
    /// Writes to the beginning of `to`.
    pub fn new(to: &'a mut [u8]) -> Self {
        Self {
            to,
            len: 0,
            fits: true,
        }
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        match self
            .to
            .get_mut(self.len..)
            .and_then(|rest| rest.get_mut(..bytes.len()))
        {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.fits = false,
        }
        self
    }

    /// A number of 8 bits.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// A number of 16 bits.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A number of 64 bits.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// `len[2] bytes`.
    pub fn string(&mut self, text: &[u8]) -> &mut Self {
        match u16::try_from(text.len()) {
            Ok(len) => self.u16(len).bytes(text),
            Err(_) => {
                self.fits = false;
                self
            }
        }
    }

    /// Puts the message's length into its first four bytes; `None` if it did not fit.
    pub fn finish(&mut self) -> Option<usize> {
        let size = u32::try_from(self.len).ok().filter(|_| self.fits)?;
        self.to.get_mut(..4)?.copy_from_slice(&size.to_le_bytes());
        Some(self.len)
    }
}

/// Reads fields of a message; `None` at its end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the beginning of `rest`.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// So many bytes as they are.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    /// A number of 8 bits.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// A number of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// `len[2] bytes`.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.bytes(usize::from(len))
    }
}
