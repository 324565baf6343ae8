//! Bytes pass between another program's memory and whatever a call names, a piece at a time.

use base::VirtAddr;
use sync::Result;

use super::{Sink, Source};
use crate::space::{AddressSpace, Reach};

/// Bytes that pass between two programs at a time.
const PIECE_BYTES: usize = 1024;

impl AddressSpace {
    /// Copies a piece of at most `len` bytes at `at` into `to`; returns its length. May block.
    pub fn peek_piece(&self, at: VirtAddr, len: usize, to: &mut Sink<'_>) -> Result<usize> {
        let mut piece = [0; PIECE_BYTES];
        let len = len.min(to.remaining()).min(PIECE_BYTES);
        let count = self.peek(at, &mut piece[..len])?;
        to.put(&piece[..count])
    }

    /// Copies a piece of at most `len` bytes of `from` to `at`; returns its length. May block.
    pub fn poke_piece(
        &self,
        at: VirtAddr,
        len: usize,
        from: &mut Source<'_>,
        reach: Reach,
    ) -> Result<usize> {
        let mut piece = [0; PIECE_BYTES];
        let len = len.min(PIECE_BYTES);
        let count = from.take(&mut piece[..len])?;
        let poked = self.poke(at, &piece[..count], reach);
        // The next piece begins with what had no place here.
        from.rewind(count - *poked.as_ref().unwrap_or(&0));
        poked
    }
}
