//! Memory that is lent for one request, and who hears of its end (`lent`).

use alloc::sync::Arc;
use core::ops::Range;
use core::slice;

use base::PAGE_BYTES;
use block::{Done, Failure};
use hal::Span;
use sync::{Error, Result};

use crate::failure::settle;
use crate::lent_pages::LentPages;

/// Who hears of the ends of its requests. The pages that it lends for one are there for as long as it is: a request
/// counts its taker, and not the pages.
pub trait Taker: Send + Sync {
    /// A request has ended. It must not block, nor hand another in.
    fn ended(self: Arc<Self>, tag: [u64; 2], result: Result<()>);

    /// Requests that have no second half of their tag ([`WHOLE`]) have ended well. The same holds.
    fn done(self: Arc<Self>, tags: &[u64]);
}

/// The second half of a request's tag whose first half says all.
pub const WHOLE: u64 = u64::MAX;

/// Who hears of the end of a transfer of a part of one page, and its tag's first half.
pub(crate) struct Owner {
    pub taker: Arc<dyn Taker>,
    pub tag: u64,
}

/// What a request moves.
enum Memory {
    /// Nothing: it is a flush, or a discard.
    Nothing,
    /// Bytes of one page.
    Part(Span),
    /// Whole pages.
    Pages(Arc<LentPages>, Range<u32>),
}

/// Memory that is lent for a request, and who hears of its end.
pub struct Loan {
    memory: Memory,
    taker: Arc<dyn Taker>,
    tag: [u64; 2],
}

impl Loan {
    /// For what moves no memory. The tag is what the taker calls the request.
    pub fn of_nothing(taker: Arc<dyn Taker>, tag: [u64; 2]) -> Self {
        Self {
            memory: Memory::Nothing,
            taker,
            tag,
        }
    }

    /// Of these bytes, as many as one request can be of; `None` if they are not there.
    #[inline]
    pub fn new(
        pages: &Arc<LentPages>,
        bytes: &Range<u64>,
        taker: Arc<dyn Taker>,
        tag: [u64; 2],
    ) -> Option<Self> {
        let page = PAGE_BYTES as u64;
        let memory = match bytes.end - bytes.start <= page - bytes.start % page {
            true => Memory::Part(pages.part(bytes)?),
            false => {
                let range = (bytes.start / page) as u32..(bytes.end / page) as u32;
                Memory::Pages(pages.clone(), range)
            }
        };
        Some(Self { memory, taker, tag })
    }

    /// Of a part of one page.
    pub(crate) fn of_page(memory: Span, owner: Owner) -> Self {
        Self {
            memory: Memory::Part(memory),
            taker: owner.taker,
            tag: [owner.tag, WHOLE],
        }
    }

    #[inline]
    pub(crate) fn spans(&self) -> &[Span] {
        match &self.memory {
            Memory::Nothing => &[],
            Memory::Part(span) => slice::from_ref(span),
            Memory::Pages(pages, range) => pages.spans(range),
        }
    }

    /// The request has ended.
    #[inline]
    pub(crate) fn end(self, result: core::result::Result<Done, Failure>) {
        self.taker.ended(self.tag, settle(result));
    }

    /// It was not taken.
    #[cold]
    pub(crate) fn refuse(self) {
        self.taker.ended(self.tag, Err(Error::Io));
    }
}
