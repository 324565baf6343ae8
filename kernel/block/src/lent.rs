//! Requests of who keeps their memory for many of them: rings of programs (`kernel/vsa`).
//!
//! Pages are pinned once ([`LentPages`]). A request is a [`Loan`] of some of them, which lies by value at its command's place in the
//! disk's queue: it neither allocates nor touches a page's count. A [`Batch`] shows the device all of it at once.
//!
//! Lock order: a batch is a lane's lock. An end is told under it, by whoever takes it.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::Ordering;

use base::{Instant, PAGE_BYTES};
use block::{Admitted, ChannelBox, Operation, Queue, Request};
use block::{SECTOR_BYTES, SectorRange};
use mach::sync::SpinGuard;

use crate::bio::Carried;
use crate::disk::{Disk, Lane};
use crate::store::Store;

pub use crate::lent_pages::LentPages;
use crate::loan::Owner;
pub use crate::loan::{Loan, Taker, WHOLE};

/// How many of the bytes, at least one, one request can be of: whole pages, or a part of one.
#[inline]
pub fn one_request(bytes: &Range<u64>) -> u64 {
    let (page, len) = (PAGE_BYTES as u64, bytes.end - bytes.start);
    match bytes.start % page {
        0 if len >= page => len / page * page,
        offset => len.min(page - offset),
    }
}

/// A disk's queue, locked: what is handed in is shown to the device at the batch's end.
pub struct Batch<'a> {
    store: &'a Store,
    lane: &'a Lane,
    /// Where the store lies, and how long it is.
    first_sector: u64,
    bytes: u64,
    queue: SpinGuard<'a, Queue<Carried, ChannelBox>>,
    now: Instant,
    is_gone: bool,
    is_begun: bool,
}

impl Batch<'_> {
    /// How many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Takes a request about these bytes of the store, none for a flush, if there is room for it. Its end may be told before this
    /// returns.
    #[inline]
    pub fn submit(&mut self, operation: Operation, bytes: Range<u64>, loan: Loan) {
        let sectors = match operation {
            Operation::Flush => Some(SectorRange::default()),
            _ => self.store.sectors_of(&bytes),
        };
        let (Some(sectors), false) = (sectors, self.is_gone) else {
            return loan.refuse();
        };
        let request = Request {
            operation,
            sectors,
            keep: Carried::Lent(loan),
        };
        match self.queue.submit(request, self.now) {
            Admitted::UnderWay => self.is_begun = true,
            other => end(self.lane, other),
        }
    }

    /// The same for a transfer between the bytes of the store from `first` on and these of the pages, which are whole sectors of one, whose
    /// tag is [`WHOLE`] but for its first half. False if it is to be [submitted](Self::submit), and `taker` was not asked for.
    #[inline]
    pub fn submit_page(
        &mut self,
        is_write: bool,
        first: u64,
        (pages, memory): (&LentPages, Range<u64>),
        tag: u64,
        taker: impl FnOnce() -> Arc<dyn Taker>,
    ) -> bool {
        let Some(memory) = pages.part(&memory) else {
            return false;
        };
        let end = first.checked_add(memory.len().into());
        if self.is_gone || end.is_none_or(|end| end > self.bytes) {
            return false;
        }
        let first = self.first_sector + first / SECTOR_BYTES;
        let owner = || Owner {
            taker: taker(),
            tag,
        };
        let queue = &mut *self.queue;
        let is_sent = queue.submit_page(is_write, first, memory, owner, self.now);
        self.is_begun |= is_sent;
        is_sent
    }
}

/// A request was over at once.
#[cold]
fn end(lane: &Lane, admitted: Admitted<Carried>) {
    match admitted {
        Admitted::UnderWay => {}
        Admitted::Ended(completion) => lane.idle.hand_out(completion),
        Admitted::Full(Request { keep, .. }) => {
            if let Carried::Lent(loan) = keep {
                loan.refuse();
            }
        }
    }
}

impl Store {
    /// Which sectors of the disk these bytes are, which begin and end with sectors; `None` if they are not all there.
    #[inline]
    fn sectors_of(&self, bytes: &Range<u64>) -> Option<SectorRange> {
        let len = bytes.end.checked_sub(bytes.start)?;
        let first = self.check(bytes.start, len as usize).ok()?;
        Some(SectorRange {
            first: first / SECTOR_BYTES,
            count: len / SECTOR_BYTES,
        })
    }

    /// Hands in several requests at once.
    #[inline]
    pub fn batch<T>(&self, hand_in: impl FnOnce(&mut Batch<'_>) -> T) -> T {
        let lane = self.disk.lane();
        let queue = lane.queue.lock();
        let mut batch = Batch {
            store: self,
            lane,
            first_sector: self.first_sector(),
            bytes: self.bytes(),
            queue,
            now: mach::time::now(),
            // Who ends a device that is gone says so first, and ends what its queues have then.
            is_gone: self.disk.is_gone.load(Ordering::Acquire),
            is_begun: false,
        };
        let done = hand_in(&mut batch);
        if batch.is_begun {
            batch.queue.publish();
            drop(batch);
            Disk::watch(&self.disk);
        }
        done
    }
}
