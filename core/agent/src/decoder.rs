//! Bytes into frames.

use alloc::vec::Vec;

use crate::{FRAME_BYTES_MAX, Frame, HEADER_BYTES, Message, PAYLOAD_BYTES_MAX};

/// The other side does not speak this protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// Gathers the bytes of one frame after the other.
///
/// Invariant: `len <= bytes.len()`.
pub struct Decoder {
    bytes: Vec<u8>,
    len: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::in_buffer(alloc::vec![0; FRAME_BYTES_MAX])
    }
}

impl Decoder {
    /// One that gathers them in `bytes`, of which there are [`FRAME_BYTES_MAX`].
    pub fn in_buffer(bytes: Vec<u8>) -> Self {
        Self { bytes, len: 0 }
    }

    /// Where the next bytes go; never empty. [`note`](Self::note) says how many came.
    pub fn wanted(&mut self) -> &mut [u8] {
        let end = self.end().unwrap_or(HEADER_BYTES);
        if self.len == end {
            self.len = 0;
        }
        let end = self.end().unwrap_or(HEADER_BYTES);
        self.bytes.get_mut(self.len..end).unwrap_or_default()
    }

    /// `count` bytes have come; whether the [`frame`](Self::frame) is whole with them.
    pub fn note(&mut self, count: usize) -> Result<bool, Malformed> {
        self.len = (self.len + count).min(self.bytes.len());
        let end = self.end()?;
        Ok(self.len >= HEADER_BYTES && self.len >= end)
    }

    /// The frame that is whole.
    pub fn frame(&self) -> Result<Frame<'_>, Malformed> {
        let (Ok(end), &[c0, c1, kind, ..]) = (self.end(), self.bytes.as_slice()) else {
            return Err(Malformed);
        };
        let payload = self.bytes.get(HEADER_BYTES..end).unwrap_or_default();
        let message = Message::decode(kind, payload).ok_or(Malformed)?;
        let channel = u16::from_le_bytes([c0, c1]);
        Ok(Frame { channel, message })
    }

    /// How long the frame is, as far as that is known.
    fn end(&self) -> Result<usize, Malformed> {
        if self.len < HEADER_BYTES {
            return Ok(HEADER_BYTES);
        }
        let &[_, _, _, zero, l0, l1, ..] = self.bytes.as_slice() else {
            return Err(Malformed);
        };
        let payload = usize::from(u16::from_le_bytes([l0, l1]));
        match zero == 0 && payload <= PAYLOAD_BYTES_MAX {
            true => Ok(HEADER_BYTES + payload),
            false => Err(Malformed),
        }
    }
}
