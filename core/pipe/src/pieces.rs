//! The contents of a pipe, gone through without a change.
//!
//! They are [`Piece`]s: stretches of the ring, and loans between them. A read copies from
//! each; who can use pages as they are takes a share of the loans that come next.

use alloc::collections::vec_deque::Iter;
use core::iter::Peekable;

use base::Memory;
use mbuf::{Chain, Mbuf};

use crate::contents::Contents;
use crate::loans::Loan;
use crate::{ByteRing, Sink};

/// Bytes that lie together.
enum Piece<'a> {
    /// `len` bytes of the ring, `skip` bytes behind its head.
    Ring { skip: usize, len: usize },
    /// A loan.
    Lent(&'a Mbuf),
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Ring { len, .. } => *len,
            Self::Lent(part) => part.len(),
        }
    }
}

impl<M: Memory> Contents<M> {
    /// Gives at most `limit` bytes from the `skip`-th on to `to`; they stay.
    pub(crate) fn peek<S: Sink>(
        &self,
        skip: usize,
        to: &mut S,
        limit: usize,
    ) -> Result<usize, S::Error> {
        let mut done = 0;
        for (piece, from) in self.pieces_from(skip) {
            let wanted = (piece.len() - from).min(limit - done);
            let count = match self.give(&piece, from, to, wanted) {
                Err(error) if done == 0 => return Err(error),
                given => given.unwrap_or(0),
            };
            done += count;
            if count < wanted || done == limit {
                break;
            }
        }
        Ok(done)
    }

    fn give<S: Sink>(
        &self,
        piece: &Piece<'_>,
        from: usize,
        to: &mut S,
        len: usize,
    ) -> Result<usize, S::Error> {
        match piece {
            Piece::Ring { skip, .. } => self.ring.peek(skip + from, to, len),
            Piece::Lent(part) => to.put(&part.bytes()[from..from + len]),
        }
    }

    /// A share of the loans from the `skip`-th byte on, at most `limit` bytes; empty if bytes
    /// of the ring are there.
    pub(crate) fn share(&self, skip: usize, limit: usize) -> Chain {
        let mut shared = Chain::new();
        for (piece, from) in self.pieces_from(skip) {
            let Piece::Lent(part) = piece else { break };
            let mut part = part.clone();
            part.advance(from);
            part.truncate(limit - shared.len());
            shared.push_back(part);
        }
        shared
    }

    /// The piece with the `skip`-th byte, and which byte of the piece that is, and those that
    /// follow, from their first.
    fn pieces_from(&self, mut skip: usize) -> impl Iterator<Item = (Piece<'_>, usize)> {
        self.pieces().filter_map(move |piece| {
            let from = skip.min(piece.len());
            skip -= from;
            (from < piece.len()).then_some((piece, from))
        })
    }

    /// All that is there, in order.
    fn pieces(&self) -> Pieces<'_, M> {
        Pieces {
            ring: &self.ring,
            at: self.ring.head(),
            loans: self.loans.iter(),
        }
    }
}

/// The pieces that are left.
struct Pieces<'a, M: Memory> {
    ring: &'a ByteRing<M>,
    /// Position of the next byte of the ring.
    at: u64,
    loans: Peekable<Iter<'a, Loan>>,
}

impl<'a, M: Memory> Iterator for Pieces<'a, M> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        let loan = self.loans.peek();
        let end = loan.map_or(self.ring.tail(), |loan| loan.place);
        if end <= self.at {
            return self.loans.next().map(|loan| Piece::Lent(&loan.part));
        }
        let piece = Piece::Ring {
            skip: (self.at - self.ring.head()) as usize,
            len: (end - self.at) as usize,
        };
        self.at = end;
        Some(piece)
    }
}
