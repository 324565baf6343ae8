//! A program's bytes in buffers, of one datagram or of many given at once (Linux's UDP_SEGMENT).
//!
//! Bytes that are cut every so many are filled piece by piece into buffers of their own, each
//! with room for its headers. All are filled before the first is sent, so that a message is sent
//! whole or not at all.

use alloc::vec::Vec;

use mbuf::Chain;

use crate::context::Context;
use crate::env::Env;
use crate::error::Error;

/// Datagrams of one message at most, as in Linux (UDP_MAX_SEGMENTS).
const SEGMENTS_MAX: usize = 128;

/// Whether a message of `len` bytes may be cut every `segment_len`, of which zero cuts nothing;
/// `path_len` is what one packet takes.
///
/// Errors: `InvalidState` for segments that are larger than that, or too many.
pub(super) fn check_segments(len: usize, segment_len: usize, path_len: usize) -> Result<(), Error> {
    match segment_len > path_len || segment_len != 0 && len > segment_len * SEGMENTS_MAX {
        true => Err(Error::InvalidState),
        false => Ok(()),
    }
}

impl<E: Env> Context<'_, E> {
    /// Buffers with `len` bytes that `fill` writes; `None` if it wrote less than it was offered.
    pub(super) fn fill_chain(
        &mut self,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<Option<Chain>, Error> {
        let mut chain = Chain::new();
        while chain.len() < len {
            let mut buffer = self.buffer_to_queue().ok_or(Error::NoBuffers)?;
            let room = buffer.tailroom().min(len - chain.len());
            let space = buffer.extend(room).ok_or(Error::NoBuffers)?;
            if fill(space) < room {
                return Ok(None);
            }
            chain.push_back(buffer);
        }
        Ok(Some(chain))
    }

    /// Fills pieces of `piece_len` bytes, and one with the rest; `None` if `fill` failed.
    pub(super) fn fill_segments(
        &mut self,
        len: usize,
        piece_len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<Option<Vec<Chain>>, Error> {
        let mut pieces = Vec::new();
        let count = len.div_ceil(piece_len);
        pieces
            .try_reserve_exact(count)
            .map_err(|_| Error::NoBuffers)?;
        let mut left = len;
        while left > 0 {
            let wanted = left.min(piece_len);
            let Some(piece) = self.fill_chain(wanted, fill)? else {
                return Ok(None);
            };
            pieces.push(piece);
            left -= wanted;
        }
        Ok(Some(pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fit_the_path_and_are_not_too_many() {
        assert_eq!(check_segments(64_000, 0, 1472), Ok(()));
        assert_eq!(check_segments(64_000, 1472, 1472), Ok(()));
        assert_eq!(check_segments(100, 1473, 1472), Err(Error::InvalidState));
        assert_eq!(check_segments(128, 1, 1472), Ok(()));
        assert_eq!(check_segments(129, 1, 1472), Err(Error::InvalidState));
    }
}
