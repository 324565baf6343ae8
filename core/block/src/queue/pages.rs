//! Transfers of a part of one page, whose memory is kept by others for many of them: a ring's.
//!
//! They are [direct](super::direct) transfers, of which even less is moved: what comes with one is its owner, who is written to the
//! place of the command's tag and taken out again, and nothing else of it is looked at before a restart.

use alloc::boxed::Box;

use super::*;
use crate::order::Writing;
use crate::request::{Done, Durability, PageEnd, SectorRange};
use hal::Span;

/// The place of a command's tag.
struct Place<O> {
    /// Nobody's: no transfer.
    owner: Option<O>,
    /// Of a write.
    writing: Option<Writing>,
    begun: Instant,
    /// The first sector, and the memory.
    about: Option<(u64, Span)>,
}

/// Those of one channel.
pub(super) struct Pages<O> {
    places: Box<[Place<O>]>,
}

impl<O> Pages<O> {
    /// For commands with tags below `depth`.
    pub(super) fn new(depth: u16) -> Self {
        let nothing = |_| Place {
            owner: None,
            writing: None,
            begun: Instant::START,
            about: None,
        };
        Self {
            places: (0..depth).map(nothing).collect(),
        }
    }

    /// Whether one should have ended by now.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        let is_late = |place: &Place<O>| place.owner.is_some() && place.begun + TIMEOUT <= now;
        self.places.iter().any(is_late)
    }

    /// What was said of the transfer that has this tag.
    #[inline]
    pub(super) fn take(&mut self, tag: Tag) -> Option<Page<O>> {
        let place = self.places.get_mut(usize::from(tag.0))?;
        let owner = place.owner.take()?;
        let (first, memory) = place.about?;
        Some(Page {
            owner,
            writing: place.writing,
            begun: place.begun,
            first,
            memory,
        })
    }

    /// All that there are, which are none any more.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Page<O>> {
        let tags = 0..self.places.len() as u16;
        tags.filter_map(|tag| self.take(Tag(tag)))
    }
}

/// A transfer that the device has.
pub(super) struct Page<O> {
    owner: O,
    writing: Option<Writing>,
    begun: Instant,
    first: u64,
    memory: Span,
}

impl<O> Page<O> {
    fn operation(&self) -> Operation {
        match self.writing {
            None => Operation::Read,
            Some(_) => Operation::Write(Durability::Volatile),
        }
    }

    fn sectors(&self) -> SectorRange {
        split::sectors_of(self.first, self.memory)
    }

    /// As others are, and when it began.
    pub(super) fn into_request<K: Keep<Owner = O>>(self) -> (Request<K>, Instant) {
        let request = Request {
            operation: self.operation(),
            sectors: self.sectors(),
            keep: K::of_page(self.memory, self.owner),
        };
        (request, self.begun)
    }
}

impl<K: Keep, C: Channel> Queue<K, C> {
    /// Sends the transfer between whole sectors of one page and as many from `first` on, for which there is [room](Self::room); false if it
    /// is to be [submitted](Self::submit) as others are, and `owner` was not asked for.
    #[inline]
    pub fn submit_page(
        &mut self,
        is_write: bool,
        first: u64,
        memory: Span,
        owner: impl FnOnce() -> K::Owner,
        now: Instant,
    ) -> bool {
        if !self.takes_page(is_write, first, memory) {
            return false;
        }
        let writing = is_write.then(|| self.wire.order.write_begins());
        let Ok(tag) = self.wire.channel.submit_page(is_write, first, memory) else {
            return false;
        };
        self.wire.commands += 1;
        self.counters.begin(now);
        if let Some(place) = self.direct.pages.places.get_mut(usize::from(tag.0)) {
            place.owner = Some(owner());
            place.writing = writing;
            place.begun = now;
            place.about = Some((first, memory));
            self.direct.count += 1;
        }
        true
    }

    /// Whether it may be sent at once.
    #[inline]
    fn takes_page(&self, is_write: bool, first: u64, memory: Span) -> bool {
        let limits = &self.wire.limits;
        let sectors = split::sectors_of(first, memory);
        self.wire.takes_pages
            && self.has_room()
            && self.waiting.is_empty()
            && !self.wire.is_broken
            && !(is_write && limits.is_read_only)
            && sectors.end().is_some_and(|end| end <= limits.sectors)
            && (sectors.first | sectors.count) & self.wire.inside_block == 0
            && split::is_in_page(sectors, &[memory])
    }

    /// The command of one has ended.
    #[inline]
    pub(super) fn end_page(
        &mut self,
        page: Page<K::Owner>,
        verdict: Verdict,
        now: Instant,
    ) -> PageEnd<K::Owner> {
        self.direct.count -= 1;
        let (operation, sectors) = (page.operation(), page.sectors());
        let kind = Kind::of(operation);
        self.counters.end(kind, sectors.count, page.begun, now);
        let result = match (verdict.failure(), page.writing) {
            (None, None) => Ok(Done::Read),
            (None, Some(writing)) => Ok(Done::Written(self.wire.order.write_completed(writing))),
            (Some(failure), _) => {
                self.counters.failed += 1;
                Err(failure)
            }
        };
        PageEnd {
            result,
            operation,
            sectors,
            begun: page.begun,
            memory: page.memory,
            owner: page.owner,
        }
    }
}
