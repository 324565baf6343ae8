//! Requests of who keeps their memory for many of them: rings of programs (`kernel/vsa`).
//!
//! Pages are pinned once ([`LentPages`]), and what a request needs ([`Parcel`]) goes round: handed in with a [`Batch`],
//! handed back with its end ([`Taker::ended`]). So a request neither allocates nor touches a page's count, and a batch
//! shows the device all of it at once.
//!
//! Lock order: a batch is a lane's lock. An end is told under it, by whoever takes it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::Ordering;

use base::{Instant, PAGE_BYTES};
use block::{Admitted, ChannelBox, Operation, Queue, Request, SectorRange};
use mach::sync::SpinGuard;
use sync::Error;

use crate::bio::{Bio, End};
use crate::disk::{Disk, Lane};
use crate::store::Store;

pub use crate::bio::{Parcel, Taker};
pub use crate::lent_pages::LentPages;

/// How many of the bytes, at least one, one request can be of: whole pages, or a part of one.
#[inline]
pub fn one_request(bytes: &Range<u64>) -> u64 {
    let (page, len) = (PAGE_BYTES as u64, bytes.end - bytes.start);
    match bytes.start % page {
        0 if len >= page => len / page * page,
        offset => len.min(page - offset),
    }
}

/// A request that a batch takes.
pub struct Order<'a> {
    /// What.
    pub operation: Operation,
    /// Which bytes of the store; none for a flush.
    pub bytes: Range<u64>,
    /// Its memory, if it moves any.
    pub memory: Option<(&'a Arc<LentPages>, Range<u64>)>,
    /// Who hears of its end.
    pub taker: Arc<dyn Taker>,
    /// What that calls it.
    pub tag: [u64; 2],
}

/// A disk's queue, locked: what is handed in is shown to the device at the batch's end.
pub struct Batch<'a> {
    store: &'a Store,
    lane: &'a Lane,
    queue: SpinGuard<'a, Queue<Box<Bio>, ChannelBox>>,
    now: Instant,
    is_begun: bool,
}

impl Batch<'_> {
    /// How many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Takes a request, for which there is room. Its end may be told before this returns.
    #[inline]
    pub fn submit(&mut self, order: Order<'_>, mut parcel: Parcel) {
        let Order { taker, tag, .. } = order;
        let lent = order
            .memory
            .is_none_or(|(pages, bytes)| parcel.lend(pages, &bytes).is_some());
        let len = (order.bytes.end - order.bytes.start) as usize;
        let first = self.store.check(order.bytes.start, len);
        let (Ok(first), true, false) =
            (first, lent, self.store.disk.is_gone.load(Ordering::Acquire))
        else {
            return give_back(taker, tag, parcel);
        };
        let sectors = match order.operation {
            Operation::Flush => SectorRange::default(),
            _ => SectorRange {
                first: first / block::SECTOR_BYTES,
                count: len as u64 / block::SECTOR_BYTES,
            },
        };
        parcel.0.end = End::Taker(taker, tag);
        let request = Request {
            operation: order.operation,
            sectors,
            keep: parcel.0,
        };
        match self.queue.submit(request, self.now) {
            Admitted::UnderWay => self.is_begun = true,
            Admitted::Ended(completion) => self.lane.idle.hand_out(completion),
            Admitted::Full(Request { mut keep, .. }) => {
                if let End::Taker(taker, tag) = core::mem::replace(&mut keep.end, End::Thread) {
                    give_back(taker, tag, Parcel(keep));
                }
            }
        }
    }
}

#[cold]
fn give_back(taker: Arc<dyn Taker>, tag: [u64; 2], mut parcel: Parcel) {
    parcel.0.clear();
    taker.ended(tag, Err(Error::Io), parcel);
}

impl Store {
    /// Hands in several requests at once.
    #[inline]
    pub fn batch<T>(&self, hand_in: impl FnOnce(&mut Batch<'_>) -> T) -> T {
        let lane = self.disk.lane();
        let mut batch = Batch {
            store: self,
            lane,
            queue: lane.queue.lock(),
            now: mach::time::now(),
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
