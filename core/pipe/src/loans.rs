//! Pages of files that lie in a pipe on loan, and where they come between its bytes.
//!
//! A loan follows the bytes that were in the ring when it came: it is next once the ring's
//! head has reached their end. A ring that runs empty moves its head on to the next page,
//! so the head may be behind a loan's place and the loan still the next.
//!
//! A loan takes the room of a page, however few of its bytes are in the pipe, as it keeps
//! a whole page in memory. So a pipe keeps no more pages than its capacity has.

use alloc::collections::VecDeque;
use alloc::collections::vec_deque::Iter;
use core::iter::Peekable;

use base::PAGE_BYTES;
use mbuf::Mbuf;

/// A part of a page; never empty.
pub(crate) struct Loan {
    /// Ring position of the bytes that come after it.
    pub(crate) place: u64,
    pub(crate) part: Mbuf,
}

/// The loans in order; places never fall.
#[derive(Default)]
pub(crate) struct Loans {
    queue: VecDeque<Loan>,
    len: usize,
}

impl Loans {
    /// Bytes that could be read.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the pipe's capacity that they take.
    pub(crate) fn footprint(&self) -> usize {
        self.queue.len() * PAGE_BYTES
    }

    /// Adds `part` behind all others.
    pub(crate) fn push(&mut self, place: u64, part: Mbuf) {
        self.len += part.len();
        self.queue.push_back(Loan { place, part });
    }

    /// The first.
    pub(crate) fn first(&self) -> Option<&Loan> {
        self.queue.front()
    }

    /// All in order.
    pub(crate) fn iter(&self) -> Peekable<Iter<'_, Loan>> {
        self.queue.iter().peekable()
    }

    /// Bytes of those in front of ring position `place`.
    pub(crate) fn len_before(&self, place: u64) -> usize {
        let before = self.queue.iter().take_while(|loan| loan.place <= place);
        before.map(|loan| loan.part.len()).sum()
    }

    /// Drops up to `count` bytes of the first; returns how many. What has none left goes
    /// back.
    pub(crate) fn skip(&mut self, count: usize) -> usize {
        let Some(first) = self.queue.front_mut() else {
            return 0;
        };
        let skipped = count.min(first.part.len());
        first.part.advance(skipped);
        if first.part.is_empty() {
            self.queue.pop_front();
        }
        self.len -= skipped;
        skipped
    }
}
