//! One request's memory, and who hears of its end (what Linux calls a `bio`).
//!
//! A request that is over leaves its `Bio` to the next one ([`Pool`]), so a direct transfer
//! allocates nothing. Its pages are kept until the device has ended the request or was stopped:
//! whoever asked for it may long be gone.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use base::PAGE_BYTES;
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
use crate::lent_pages::LentPages;
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
    /// Who handed it in, and gets it back.
    Taker(Arc<dyn Taker>, [u64; 2]),
}

/// One request's memory, and who hears of its end.
pub(crate) struct Bio {
    spans: Vec<Span>,
    pages: Vec<Pinned<()>>,
    /// Pages that somebody keeps for many requests, these of them; what lies in one page stands in `spans`.
    pub lent: Option<(Arc<LentPages>, Range<usize>)>,
    /// Memory of the device's, from which or to which is copied.
    pub copied: Option<DmaBuf<WriteBack, Device>>,
    pub end: End,
    /// Whose figures it is part of beside the disk's.
    pub partition: Option<Arc<Partition>>,
    pub outcome: Arc<Outcome<Box<Self>>>,
}

impl Bio {
    fn new() -> Result<Box<Self>> {
        let outcome = fallible::arc(Outcome::new())?;
        Ok(fallible::boxed(Self {
            spans: Vec::new(),
            pages: Vec::new(),
            lent: None,
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
        self.lent = None;
        self.copied = None;
        self.partition = None;
        self.end = End::Thread;
    }
}

impl Keep for Box<Bio> {
    #[inline]
    fn spans(&self) -> &[Span] {
        match &self.lent {
            Some((lent, pages)) if self.spans.is_empty() => lent.spans(pages),
            _ => &self.spans,
        }
    }
}

/// Who hears of the ends of its requests. The pages that it lends for one are there for as long as it is: a request
/// counts its taker, and not the pages.
pub trait Taker: Send + Sync {
    /// A request has ended, and what it needed is there for the next. It must not block, nor hand another in.
    fn ended(self: Arc<Self>, tag: [u64; 2], result: Result<()>, parcel: Parcel);
}

/// What one request needs. It is kept and used again.
pub struct Parcel(pub(crate) Box<Bio>);

impl Parcel {
    /// Errors: `OutOfMemory`.
    pub fn new() -> Result<Self> {
        let mut bio = Bio::new()?;
        bio.reserve(1)?;
        Ok(Self(bio))
    }

    /// These bytes, which [`one_request`] says, are the request's memory.
    #[inline]
    pub(crate) fn lend(&mut self, pages: &Arc<LentPages>, bytes: &Range<u64>) -> Option<()> {
        let page = PAGE_BYTES as u64;
        if bytes.end - bytes.start <= page - bytes.start % page {
            self.0.spans.push(pages.part(bytes)?);
            return Some(());
        }
        let range = (bytes.start / page) as usize..(bytes.end / page) as usize;
        self.0.lent = Some((pages.clone(), range));
        Some(())
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
    pub(crate) fn hand_out(&self, completion: Completion<Box<Bio>>) {
        let Completion {
            result,
            keep: mut bio,
            ..
        } = completion;
        if let Some(partition) = &bio.partition {
            partition.end(&Completed {
                operation: completion.operation,
                sectors: completion.sectors.count,
                begun: completion.begun,
            });
        }
        match core::mem::replace(&mut bio.end, End::Thread) {
            End::Thread => {
                let outcome = bio.outcome.clone();
                outcome.fill(result, bio);
            }
            End::Taker(whom, tag) => {
                bio.spans.clear();
                bio.lent = None;
                whom.ended(tag, settle(result), Parcel(bio));
            }
            End::Told(whom, tag, bytes) => {
                self.give(bio);
                let told = settle(result).map(|()| bytes);
                whom.ended(tag, told);
            }
        }
    }
}
