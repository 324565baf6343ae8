//! The text of a file while it is being written.
//!
//! It grows only while there is memory beyond the kernel's reserve. Writers need not look:
//! what does not fit is left out, and [`Text::finish`] says so in the end.

use alloc::vec::Vec;
use core::fmt;

use mach::mem::fallible::TryGrow;
use sync::{Error, Result};

/// After so many bytes a text that is made piece by piece should pause.
const PIECE_BYTES: usize = 4096;

/// Text, or other bytes, that may find no memory.
#[derive(Default)]
pub struct Text {
    bytes: Vec<u8>,
    /// Bytes that were written, with those that found no memory.
    len: usize,
}

impl Text {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            len: 0,
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a piece is long enough: the rest is for the next one.
    pub fn is_piece(&self) -> bool {
        self.len >= PIECE_BYTES
    }

    /// Adds bytes.
    pub fn push_bytes(&mut self, more: &[u8]) {
        // What follows a gap would not be what it seems.
        let is_whole = self.bytes.len() == self.len;
        if is_whole && self.bytes.make_room(more.len()).is_ok() {
            self.bytes.extend_from_slice(more);
        }
        self.len += more.len();
    }

    /// Adds text.
    pub fn push_str(&mut self, more: &str) {
        self.push_bytes(more.as_bytes());
    }

    /// Adds a character.
    pub fn push(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }

    /// The bytes.
    ///
    /// Errors: `OutOfMemory` if something did not fit.
    pub fn finish(self) -> Result<Vec<u8>> {
        match self.bytes.len() == self.len {
            true => Ok(self.bytes),
            false => Err(Error::OutOfMemory),
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push_str(more);
        Ok(())
    }
}
