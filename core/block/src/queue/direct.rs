//! Transfers that are one command as they are, as most are: the command's tag is all that they need.
//!
//! Nothing of them is cut, waits for a place, or is followed by a flush. What is kept is what a restart needs: a device
//! that is stopped forgets them, and they become requests like others, to be sent again as those are. So a place among those
//! is left free for each (**Place**).

use alloc::boxed::Box;

use super::pages::{Page, Pages};
use super::*;
use crate::channel::Command;
use crate::order::Writing;
use crate::request::{Done, Durability, SectorRange};

/// A transfer that the device has, all of it.
pub(super) struct Transfer<K> {
    operation: Operation,
    sectors: SectorRange,
    begun: Instant,
    writing: Writing,
    keep: K,
}

/// Those of one channel, by their commands' tags.
pub(super) struct Direct<K: Keep> {
    transfers: Box<[Option<Transfer<K>>]>,
    /// Those of one page whose memory is kept by others.
    pub pages: Pages<K::Owner>,
    /// Of both kinds.
    pub count: usize,
}

impl<K: Keep> Direct<K> {
    /// For commands with tags below `depth`.
    pub(super) fn new(depth: u16) -> Self {
        Self {
            transfers: (0..depth).map(|_| None).collect(),
            pages: Pages::new(depth),
            count: 0,
        }
    }

    /// How many there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What came with them, but for those of one page.
    pub(super) fn keeps(&self) -> impl Iterator<Item = &K> {
        self.transfers.iter().flatten().map(|one| &one.keep)
    }

    /// Whether one should have ended by now.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        let is_late = |one: &Transfer<K>| one.begun + TIMEOUT <= now;
        self.transfers.iter().flatten().any(is_late) || self.pages.is_late(now)
    }

    #[inline]
    fn put(&mut self, tag: Tag, transfer: Transfer<K>) {
        if let Some(place) = self.transfers.get_mut(usize::from(tag.0)) {
            *place = Some(transfer);
            self.count += 1;
        }
    }

    #[inline]
    pub(super) fn take(&mut self, tag: Tag) -> Option<Transfer<K>> {
        let transfer = self.transfers.get_mut(usize::from(tag.0))?.take()?;
        self.count -= 1;
        Some(transfer)
    }
}

impl<K: Keep, C: Channel> Queue<K, C> {
    /// Sends a transfer that is one command, if the device takes it; it comes back to be sent as others are.
    #[inline]
    pub(super) fn send_direct(
        &mut self,
        request: Request<K>,
        now: Instant,
    ) -> Result<(), Request<K>> {
        if !self.is_direct(&request) {
            return Err(request);
        }
        let writing = self.wire.order.write_begins();
        let command = Command {
            operation: request.operation,
            sectors: request.sectors,
            spans: request.keep.spans(),
        };
        let Ok(tag) = self.wire.channel.submit(&command) else {
            return Err(request);
        };
        self.wire.commands += 1;
        self.counters.begin(now);
        let transfer = Transfer {
            operation: request.operation,
            sectors: request.sectors,
            begun: now,
            writing,
            keep: request.keep,
        };
        self.direct.put(tag, transfer);
        Ok(())
    }

    /// Whether it may be sent at once, as one command that nothing follows.
    #[inline]
    fn is_direct(&self, request: &Request<K>) -> bool {
        let limits = &self.wire.limits;
        let is_plain = match request.operation {
            Operation::Read => true,
            Operation::Write(Durability::Volatile) => !limits.is_read_only,
            _ => false,
        };
        is_plain
            && self.has_room()
            && self.waiting.is_empty()
            && !self.wire.is_broken
            && limits.check_range(request.sectors).is_ok()
            && (self.wire.takes_pages && split::is_in_page(request.sectors, request.keep.spans())
                || split::is_one_command(limits, request.sectors, request.keep.spans()))
    }

    /// The command of one has ended.
    #[inline]
    pub(super) fn end_direct(
        &mut self,
        transfer: Transfer<K>,
        verdict: Verdict,
        now: Instant,
    ) -> Completion<K> {
        let Transfer {
            operation,
            sectors,
            begun,
            writing,
            keep,
        } = transfer;
        let kind = Kind::of(operation);
        self.counters.end(kind, sectors.count, begun, now);
        let result = match (verdict.failure(), operation) {
            (None, Operation::Read) => Ok(Done::Read),
            (None, _) => Ok(Done::Written(self.wire.order.write_completed(writing))),
            (Some(failure), _) => {
                self.counters.failed += 1;
                Err(failure)
            }
        };
        Completion {
            result,
            operation,
            sectors,
            begun,
            keep,
        }
    }

    /// The device was stopped: they are requests like others.
    pub(super) fn settle_direct(&mut self) {
        let Direct {
            transfers, pages, ..
        } = &mut self.direct;
        let transfers = transfers.iter_mut().filter_map(Option::take);
        let all = transfers
            .map(Transfer::into_request)
            .chain(pages.take_all().map(Page::into_request));
        for (request, begun) in all {
            // There is a place (Place).
            let Some(index) = self.free.pop() else {
                continue;
            };
            if let Some(place) = self.requests.get_mut(usize::from(index)) {
                *place = Some(UnderWay::sent(request, begun));
            }
        }
        self.direct.count = 0;
    }
}

impl<K> Transfer<K> {
    /// As others are, and when it began.
    fn into_request(self) -> (Request<K>, Instant) {
        let request = Request {
            operation: self.operation,
            sectors: self.sectors,
            keep: self.keep,
        };
        (request, self.begun)
    }
}
