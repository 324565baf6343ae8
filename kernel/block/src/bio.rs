//! One request's memory, and who hears of its end (what Linux calls a `bio`).
//!
//! A request that is over leaves its `Bio` to the next one ([`Pool`]), so a direct transfer
//! allocates nothing. Its pages are kept until the device has ended the request or was stopped:
//! whoever asked for it may long be gone. A request of a ring needs none: its memory was lent before (`lent`).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use block::{Completion, Done, Failure, Keep};
use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, Span};
use mach::mem::fallible::{self, TryGrow};
use mach::mem::{Page, Pinned};
use mach::sync::Spin;
use sync::Result;
use vfs::file::transfer::{Tag, TransferEnd};

use crate::failure::settle;
use crate::loan::{Loan, Owner};
use crate::outcome::Outcome;
use crate::partition::{Completed, Partition};

/// Pieces of memory in one request at most: 1 MiB that begins inside of a page.
pub(crate) const PIECES_MAX: usize = 257;
/// One with room for more pieces is not kept.
const KEPT_PIECES: usize = 32;

/// How a request ended, and its memory, which is ours again.
pub(crate) type Ended = (core::result::Result<Done, Failure>, Box<Bio>);

/// Who hears of the end.
pub(crate) enum End {
    /// The thread that waits for the outcome.
    Thread,
    /// Who began it, for so many bytes.
    Told(Arc<dyn TransferEnd>, Tag, usize),
}

/// What comes with a request of a disk.
pub(crate) enum Carried {
    /// Memory for this request alone.
    Own(Box<Bio>),
    /// Memory of a ring's, for many.
    Lent(Loan),
}

/// One request's memory, and who hears of its end.
pub(crate) struct Bio {
    spans: Vec<Span>,
    pages: Vec<Pinned<()>>,
    /// Memory of the device's, from which or to which is copied.
    pub copied: Option<DmaBuf<WriteBack, Device>>,
    pub end: End,
    /// Whose figures it is part of beside the disk's.
    pub partition: Option<Arc<Partition>>,
    pub outcome: Arc<Outcome<Box<Self>>>,
}

impl Bio {
    pub(crate) fn new() -> Result<Box<Self>> {
        let outcome = fallible::arc(Outcome::new())?;
        Ok(fallible::boxed(Self {
            spans: Vec::new(),
            pages: Vec::new(),
            copied: None,
            end: End::Thread,
            partition: None,
            outcome,
        })?)
    }

    /// Makes room for so many more pieces.
    ///
    /// Errors: `OutOfMemory`.
    pub(crate) fn reserve(&mut self, pieces: usize) -> Result<()> {
        self.spans.make_room(pieces)?;
        Ok(self.pages.make_room(pieces)?)
    }

    /// Adds some bytes of a page, for which there is room; false where a device cannot be told of it.
    pub(crate) fn push(&mut self, page: Page, bytes: Range<usize>) -> bool {
        if self.pages.len() == self.pages.capacity() || self.spans.len() == self.spans.capacity() {
            return false;
        }
        let Some(pinned) = Pinned::new(page, ()) else {
            return false;
        };
        let Some(span) = Span::of_lent(&pinned, bytes.start, bytes.len()) else {
            return false;
        };
        self.spans.push(span);
        self.pages.push(pinned);
        true
    }

    /// How many pieces there are.
    pub(crate) fn pieces(&self) -> usize {
        self.spans.len()
    }

    /// Takes all pieces behind the first `pieces` out again.
    pub(crate) fn cut_to(&mut self, pieces: usize) {
        self.spans.truncate(pieces);
        self.pages.truncate(pieces);
    }

    /// Adds memory of the device's, all of it.
    pub(crate) fn set_copied(&mut self, memory: DmaBuf<WriteBack, Device>, span: Span) {
        self.spans.push(span);
        self.copied = Some(memory);
    }

    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.pages.clear();
        self.copied = None;
        self.partition = None;
        self.end = End::Thread;
    }
}

impl Keep for Carried {
    type Owner = Owner;

    fn of_page(memory: Span, owner: Owner) -> Self {
        Self::Lent(Loan::of_page(memory, owner))
    }

    #[inline]
    fn spans(&self) -> &[Span] {
        match self {
            Self::Own(bio) => &bio.spans,
            Self::Lent(loan) => loan.spans(),
        }
    }
}

/// Those that wait for a request.
#[expect(clippy::vec_box, reason = "they go from hand to hand as boxes")]
pub(crate) struct Pool(Spin<Vec<Box<Bio>>>);

impl Pool {
    /// With room for all that one queue may have.
    pub(crate) fn new() -> Self {
        Self(Spin::new(Vec::with_capacity(block::REQUESTS_MAX)))
    }

    /// An empty one.
    ///
    /// Errors: `OutOfMemory`.
    pub(crate) fn take(&self) -> Result<Box<Bio>> {
        let kept = self.0.lock().pop();
        kept.map_or_else(Bio::new, Ok)
    }

    /// It is not needed any more, whatever it holds.
    pub(crate) fn give(&self, mut bio: Box<Bio>) {
        bio.clear();
        let mut kept = self.0.lock();
        if bio.spans.capacity() <= KEPT_PIECES && kept.len() < kept.capacity() {
            kept.push(bio);
        }
    }

    /// A request is over: who waits for it is told.
    #[inline]
    pub(crate) fn hand_out(&self, completion: Completion<Carried>) {
        let done = Completed {
            operation: completion.operation,
            sectors: completion.sectors.count,
            begun: completion.begun,
        };
        match completion.keep {
            Carried::Lent(loan) => loan.end(completion.result),
            Carried::Own(bio) => self.hand_back(completion.result, &done, bio),
        }
    }

    #[inline(never)]
    fn hand_back(
        &self,
        result: core::result::Result<Done, Failure>,
        done: &Completed,
        mut bio: Box<Bio>,
    ) {
        if let Some(partition) = &bio.partition {
            partition.end(done);
        }
        match core::mem::replace(&mut bio.end, End::Thread) {
            End::Thread => {
                let outcome = bio.outcome.clone();
                outcome.fill(result, bio);
            }
            End::Told(whom, tag, bytes) => {
                self.give(bio);
                let told = settle(result).map(|()| bytes);
                whom.ended(tag, told);
            }
        }
    }
}
