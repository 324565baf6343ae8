//! Zones: RAM by NUMA node and by the addresses that a device can reach.
//!
//! Each zone has a lock of its own, so CPUs of different nodes do not wait for each other.
//! Nobody holds two. How much is free is published before a lock is released: whether a
//! zone is worth asking, and how much there is in all, is known without a lock.

use core::hint::black_box;
use core::ops::DerefMut;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::zone::{Zone, reserve_of};
use crate::{Extent, FrameNo, FrameTable, Layout, NODES_MAX, Node, ORDERS, PAGES_MAX, ZONES_MAX};

/// Which addresses will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All; taken from above 4 GiB while there is any, to keep the rest for those
    /// who need it.
    #[default]
    Any,
    /// Below 4 GiB, for a device with 32 address bits.
    Low,
}

/// How far a request may go into the reserve, a part of each zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// For what programs cause and can be refused: leaves the reserve alone.
    Ordinary,
    /// For interrupt context and for what can not fail half-way: may take the last frame.
    Critical,
}

/// A request for contiguous frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How many, 1 to [`PAGES_MAX`].
    pub pages: u64,
    /// Where.
    pub reach: Reach,
    /// Whether the reserve may be used.
    pub urgency: Urgency,
}

impl Request {
    /// `pages` frames anywhere.
    pub const fn new(pages: u64, urgency: Urgency) -> Self {
        Self {
            pages,
            reach: Reach::Any,
            urgency,
        }
    }
}

/// What one zone holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneStats {
    /// Whose it is.
    pub node: Node,
    /// Whether 32 address bits reach all of it.
    pub is_low: bool,
    /// Frames that were donated to it.
    pub managed: u64,
    /// Free blocks of each order.
    pub blocks: [u64; ORDERS],
    /// Frames that CPUs of each node took from it since the start.
    pub taken: [u64; NODES_MAX],
}

impl ZoneStats {
    /// Free frames in it.
    pub fn free(&self) -> u64 {
        self.blocks
            .iter()
            .zip(0..)
            .map(|(n, order)| n << order)
            .sum()
    }
}

/// A lock around a zone, with its machine's way to wait.
pub trait ZoneLock {
    /// An unlocked one around [`Zone::EMPTY`].
    const UNLOCKED: Self;
    /// The zone, locked.
    fn lock(&self) -> impl DerefMut<Target = Zone>;
}

/// A zone, and what is known of it without its lock.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<L> {
    free: AtomicU64,
    managed: AtomicU64,
    lock: L,
}

/// The free frames of the machine that rest in no CPU's cache.
#[derive(Debug)]
pub struct Zones<L> {
    layout: Layout,
    slots: [Slot<L>; ZONES_MAX],
}

impl<L: ZoneLock> Slot<L> {
    /// Does something to the zone, and publishes what it has then.
    #[inline]
    fn with<T>(&self, change: impl FnOnce(&mut Zone) -> T) -> T {
        let mut zone = self.lock.lock();
        let done = change(&mut zone);
        self.free.store(zone.free, Relaxed);
        done
    }

    /// Whether the zone seems to have so many frames for a request of this urgency.
    #[inline]
    fn may_have(&self, pages: u64, urgency: Urgency) -> bool {
        let kept = match urgency {
            Urgency::Ordinary => reserve_of(self.managed.load(Relaxed)),
            Urgency::Critical => 0,
        };
        self.free.load(Relaxed) >= kept + pages
    }
}

impl<L: ZoneLock> Zones<L> {
    /// Zones of this layout, without frames.
    pub const fn new(layout: Layout) -> Self {
        let slots = [const {
            Slot {
                free: AtomicU64::new(0),
                managed: AtomicU64::new(0),
                lock: L::UNLOCKED,
            }
        }; ZONES_MAX];
        Self { layout, slots }
    }

    /// Where the zones lie.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    fn slots(&self) -> &[Slot<L>] {
        &self.slots[..self.layout.len()]
    }

    /// Frames that were donated.
    pub fn managed_frames(&self) -> u64 {
        self.slots()
            .iter()
            .map(|slot| slot.managed.load(Relaxed))
            .sum()
    }

    /// Free frames in all zones.
    #[inline]
    pub fn free_frames(&self) -> u64 {
        self.slots()
            .iter()
            .map(|slot| slot.free.load(Relaxed))
            .sum()
    }

    /// Frames that only critical requests may take.
    pub fn reserve(&self) -> u64 {
        let managed = self.slots().iter().map(|slot| slot.managed.load(Relaxed));
        managed.map(reserve_of).sum()
    }

    /// What each zone holds.
    pub fn stats(&self) -> impl Iterator<Item = ZoneStats> {
        self.slots().iter().enumerate().map(|(index, slot)| {
            let zone = slot.lock.lock();
            ZoneStats {
                node: self.layout.node(index),
                is_low: self.layout.is_low(index),
                managed: zone.managed,
                blocks: zone.blocks(),
                taken: zone.taken(),
            }
        })
    }

    /// Makes reserved frames allocatable, each once. Frames that the table does not
    /// describe are left out; returns how many were taken.
    pub fn donate(&self, table: &FrameTable, first: FrameNo, pages: u64) -> u64 {
        let before = self.managed_frames();
        for (slot, start, pages) in self.parts(first, pages) {
            let managed = slot.with(|zone| {
                zone.donate(table, start, start + pages);
                zone.managed
            });
            slot.managed.store(managed, Relaxed);
        }
        self.managed_frames() - before
    }

    /// Contiguous frames for a CPU of `from`, aligned to the next power of two of their
    /// number, with any content, from the nearest zone that has them. What the block has
    /// beyond them stays free.
    #[inline]
    pub fn alloc(&self, table: &FrameTable, request: Request, from: Node) -> Option<Extent> {
        self.ask(self.layout.order(from), table, request, from)
    }

    /// As [`Zones::alloc`], from `from`'s own zones only.
    pub fn alloc_near(&self, table: &FrameTable, request: Request, from: Node) -> Option<Extent> {
        let own = |&zone: &usize| self.layout.node(zone) == from;
        self.ask(self.layout.order(from).filter(own), table, request, from)
    }

    #[inline]
    fn ask(
        &self,
        zones: impl Iterator<Item = usize>,
        table: &FrameTable,
        request: Request,
        from: Node,
    ) -> Option<Extent> {
        let Request {
            pages,
            reach,
            urgency,
        } = request;
        if pages == 0 || pages > PAGES_MAX {
            return None;
        }
        zones
            .filter(|&zone| reach == Reach::Any || self.layout.is_low(zone))
            .map(|zone| &self.slots[zone])
            .filter(|slot| slot.may_have(pages, urgency))
            .find_map(|slot| slot.with(|zone| zone.alloc(table, pages, urgency, from)))
    }

    /// Single frames, not contiguous, into `to`, from the zone nearest to `from` that has
    /// any; returns how many. A request that goes into the reserve gets one at most, so
    /// that no more than it needs leaves the reserve.
    pub fn take(
        &self,
        table: &FrameTable,
        to: &mut [FrameNo],
        urgency: Urgency,
        from: Node,
    ) -> usize {
        let ask = |to: &mut [FrameNo], urgency| {
            let slots = self.layout.order(from).map(|zone| &self.slots[zone]);
            slots
                .filter(|slot| slot.may_have(1, urgency))
                .map(|slot| slot.with(|zone| zone.take(table, to, urgency, from)))
                .find(|&taken| taken > 0)
        };
        let in_reserve = to.len().min(1);
        match (ask(to, Urgency::Ordinary), urgency) {
            (Some(taken), _) => taken,
            (None, Urgency::Ordinary) => 0,
            (None, Urgency::Critical) => ask(&mut to[..in_reserve], urgency).unwrap_or(0),
        }
    }

    /// Gives contiguous frames back, to the zones that they are from.
    #[inline]
    pub fn free(&self, table: &FrameTable, extent: Extent) {
        let (first, pages) = extent.into_parts();
        for (slot, first, pages) in self.parts(first, pages) {
            slot.with(|zone| zone.give(table, first, pages));
        }
    }

    /// Gives single frames back, to the zones that they are from. Those that follow each
    /// other, up or down, go as one extent.
    pub fn give(&self, table: &FrameTable, frames: &[FrameNo]) {
        // Touch all words first, so that the processor waits for their lines together.
        for &frame in frames {
            black_box(table.owners(frame));
        }
        let mut rest = frames;
        while let Some(&first) = rest.first() {
            let zone = self.layout.zone_of(first);
            let span = self.layout.span(zone);
            let own = rest.iter().take_while(|frame| span.contains(frame)).count();
            let (batch, others) = rest.split_at(own.max(1));
            rest = others;
            self.slots[zone].with(|zone| {
                // No frame comes twice, so steps of one never turn round.
                for run in batch.chunk_by(|frame, next| frame.abs_diff(*next) == 1) {
                    let first = run[0].min(run[run.len() - 1]);
                    zone.give(table, first, run.len() as u64);
                }
            });
        }
    }

    /// The parts of a run of frames: of which zone, the first, and how many.
    #[inline]
    fn parts(&self, first: FrameNo, pages: u64) -> impl Iterator<Item = (&Slot<L>, FrameNo, u64)> {
        let (mut frame, end) = (first, first + pages);
        core::iter::from_fn(move || {
            if frame >= end {
                return None;
            }
            let (zone, start) = (self.layout.zone_of(frame), frame);
            let border = self.layout.span(zone).end.max(frame + 1);
            frame = end.min(border);
            Some((&self.slots[zone], start, frame - start))
        })
    }
}
