//! Identifiers of commands, and a list of pages for each (section 4.1.1, PRP).
//!
//! The first page is told in the command, with where in it the data begins; a second one as well. If there
//! are more, the command says where the list of all but the first lies. A slot's list never leaves its page,
//! since slots divide one.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

/// Bytes of a command.
pub(crate) const COMMAND_BYTES_MAX: u32 = 512 << 10;
/// Pages of a command whose data begins inside of one.
pub(crate) const PAGES_MAX: u16 = (COMMAND_BYTES_MAX / PAGE_BYTES) as u16 + 1;
const PAGE_BYTES: u32 = 4096;
/// Of a list: all pages but the first, eight bytes each.
const SLOT_BYTES: usize = (PAGES_MAX as usize - 1) * 8;
const _: () = assert!(
    (PAGE_BYTES as usize).is_multiple_of(SLOT_BYTES),
    "a list lies in one page"
);

/// A range of dataset management: attributes, blocks, first block.
const RANGE_BYTES: usize = 16;

/// The slots of one queue.
pub(crate) struct Slots {
    lists: DmaBuf<WriteBack, Shared>,
    free: Vec<u16>,
    is_used: Box<[bool]>,
}

impl Slots {
    pub(crate) fn new(memory: &impl DmaSource, count: u16) -> Option<Self> {
        let request = DmaRequest::new(usize::from(count) * SLOT_BYTES, PAGE_BYTES as usize);
        let lists: DmaBuf = memory.dma_alloc(&request).ok()?;
        Some(Self {
            lists: lists.share(),
            free: (0..count).rev().collect(),
            is_used: vec![false; count.into()].into_boxed_slice(),
        })
    }

    pub(crate) fn take(&mut self) -> Option<u16> {
        let slot = self.free.pop()?;
        if let Some(is_used) = self.is_used.get_mut(usize::from(slot)) {
            *is_used = true;
        }
        Some(slot)
    }

    /// Frees a slot; false if it was not in use.
    pub(crate) fn give_back(&mut self, slot: u16) -> bool {
        let is_used = self.is_used.get_mut(usize::from(slot));
        let was_used = is_used.is_some_and(core::mem::take);
        if was_used {
            self.free.push(slot);
        }
        was_used
    }

    /// Tells the pages of `spans` by way of a slot: the command's two words for it. `None` if there are too
    /// many, or gaps between them.
    #[inline]
    pub(crate) fn tell_pages(&self, slot: u16, spans: &[Span]) -> Option<(u64, u64)> {
        match spans {
            [span] if is_in_one_page(span) => Some((span.addr().0, 0)),
            _ => self.list_pages(slot, spans),
        }
    }

    fn list_pages(&self, slot: u16, spans: &[Span]) -> Option<(u64, u64)> {
        let base = usize::from(slot) * SLOT_BYTES;
        let (mut first, mut second, mut count) = (0, 0, 0);
        let mut is_page_end = true;
        for span in spans {
            let (mut at, end) = (span.addr().0, span.addr().0 + u64::from(span.len()));
            let is_page_start = at.is_multiple_of(PAGE_BYTES.into());
            if !is_page_end || count != 0 && !is_page_start || !at.is_multiple_of(4) {
                return None;
            }
            is_page_end = end.is_multiple_of(PAGE_BYTES.into());
            while at < end {
                match count {
                    0 => first = at,
                    count if count < usize::from(PAGES_MAX) => {
                        self.lists.write_u64(base + (count - 1) * 8, at);
                    }
                    _ => return None,
                }
                if count == 1 {
                    second = at;
                }
                count += 1;
                at = at / u64::from(PAGE_BYTES) * u64::from(PAGE_BYTES) + u64::from(PAGE_BYTES);
            }
        }
        match count {
            0..=2 => Some((first, second)),
            count => {
                let list = self.lists.dev_addr(base, (count - 1) * 8)?;
                Some((first, list.addr().0))
            }
        }
    }

    /// The one range of a dataset management, by way of a slot.
    pub(crate) fn tell_range(&self, slot: u16, first: u64, blocks: u32) -> Option<Span> {
        let base = usize::from(slot) * SLOT_BYTES;
        self.lists.write_u64(base, u64::from(blocks) << 32);
        self.lists.write_u64(base + 8, first);
        self.lists.dev_addr(base, RANGE_BYTES)
    }

    /// The controller has forgotten them.
    pub(crate) fn retire(&mut self) {
        self.lists.retire();
    }
}

/// Whether all of it lies in one page, where the controller can be told of it.
fn is_in_one_page(span: &Span) -> bool {
    let (at, len) = (span.addr().0, u64::from(span.len()));
    let page = u64::from(PAGE_BYTES);
    at.is_multiple_of(4) && len != 0 && len <= page - at % page
}
