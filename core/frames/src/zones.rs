//! Zones: RAM by NUMA node and by the addresses that a device can reach.

use core::hint::black_box;
use core::ops::Range;

use crate::buddy::{Buddy, largest_order};
use crate::{Extent, FrameNo, FrameTable, ORDERS, PAGES_MAX};

/// Zones that [`Zones`] can hold.
pub const ZONES_MAX: usize = 8;
/// First frame that 32 address bits do not reach.
const LOW_END: FrameNo = 1 << (32 - base::PAGE_SHIFT);
/// One frame in this many is reserved for [`Urgency::Critical`].
const RESERVE_SHARE: u64 = 64;

/// A part of the machine whose CPUs are nearer to some RAM than to other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node(pub u8);

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

/// How far a request may go into the reserve.
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
    /// Whose RAM is tried first.
    pub node: Node,
    /// Whether the reserve may be used.
    pub urgency: Urgency,
}

impl Request {
    /// `pages` frames anywhere.
    pub const fn new(pages: u64, urgency: Urgency) -> Self {
        Self {
            pages,
            reach: Reach::Any,
            node: Node(0),
            urgency,
        }
    }
}

/// The zone can not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// There are [`ZONES_MAX`] already.
    TooMany,
    /// Its borders are no multiples of [`PAGES_MAX`], so blocks could merge across them.
    Unaligned,
}

#[derive(Debug)]
struct Zone {
    node: Node,
    frames: Range<FrameNo>,
    managed: u64,
    buddy: Buddy,
}

impl Zone {
    const NONE: Self = Self {
        node: Node(0),
        frames: 0..0,
        managed: 0,
        buddy: Buddy::new(),
    };

    const fn is_low(&self) -> bool {
        self.frames.end <= LOW_END
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
}

/// The free frames of the machine that rest in no CPU's cache.
///
/// Zones are searched in the order of their addition, those of the wished node first.
#[derive(Debug)]
pub struct Zones {
    zones: [Zone; ZONES_MAX],
    len: usize,
    managed: u64,
    free: u64,
}

impl Zones {
    /// No zone, no frame.
    pub const fn new() -> Self {
        Self {
            zones: [Zone::NONE; ZONES_MAX],
            len: 0,
            managed: 0,
            free: 0,
        }
    }

    /// Adds an empty zone for the frames of `span` that are on `node`. Add zones above
    /// 4 GiB before those below, and none that straddles this line.
    pub fn add(&mut self, node: Node, span: Range<FrameNo>) -> Result<(), ZoneError> {
        if !span.start.is_multiple_of(PAGES_MAX) || !span.end.is_multiple_of(PAGES_MAX) {
            return Err(ZoneError::Unaligned);
        }
        let slot = self.zones.get_mut(self.len).ok_or(ZoneError::TooMany)?;
        slot.node = node;
        slot.frames = span;
        self.len += 1;
        Ok(())
    }

    /// Frames that were donated.
    pub const fn managed_frames(&self) -> u64 {
        self.managed
    }

    /// Free frames in all zones.
    #[inline]
    pub const fn free_frames(&self) -> u64 {
        self.free
    }

    /// Frames that only critical requests may take.
    pub const fn reserve(&self) -> u64 {
        self.managed / RESERVE_SHARE
    }

    /// What each zone holds.
    pub fn stats(&self) -> impl Iterator<Item = ZoneStats> {
        self.zones[..self.len].iter().map(|zone| ZoneStats {
            node: zone.node,
            is_low: zone.is_low(),
            managed: zone.managed,
            blocks: zone.buddy.blocks(),
        })
    }

    /// Makes reserved frames allocatable, each once. Frames that the table does not
    /// describe or that lie in no zone are left out; returns how many were taken.
    pub fn donate(&mut self, table: &FrameTable, first: FrameNo, pages: u64) -> u64 {
        let before = self.free;
        let (mut frame, end) = (first, first + pages);
        while frame < end {
            let mut order = largest_order(frame, end - frame);
            while order > 0 && !table.describes(frame, 1 << order) {
                order -= 1;
            }
            if table.describes(frame, 1 << order)
                && let Some(zone) = self.zone_of(frame)
            {
                zone.managed += 1 << order;
                zone.buddy.give_block(table, frame, order);
                self.free += 1 << order;
            }
            frame += 1 << order;
        }
        let taken = self.free - before;
        self.managed += taken;
        taken
    }

    /// Contiguous frames, aligned to the next power of two of their number, and any
    /// content. What the block has beyond them stays free.
    pub fn alloc(&mut self, table: &FrameTable, request: Request) -> Option<Extent> {
        let pages = request.pages;
        if pages == 0 || pages > PAGES_MAX || pages > self.spare(request.urgency) {
            return None;
        }
        let size = pages.next_power_of_two();
        let order = size.trailing_zeros() as u8;
        let first = self.first_of(request.node, request.reach, |buddy| {
            let first = buddy.take_block(table, order)?;
            buddy.give(table, first + pages, size - pages);
            Some(first)
        })?;
        self.free -= pages;
        Some(Extent::new(first, pages))
    }

    /// Single frames, not contiguous, into `to`; returns how many. A request that goes
    /// into the reserve gets one at most, so that no more than it needs leaves the reserve.
    pub fn take(&mut self, table: &FrameTable, to: &mut [FrameNo], urgency: Urgency) -> usize {
        let wanted = match self.spare(Urgency::Ordinary) {
            0 if urgency == Urgency::Critical => to.len().min(1),
            spare => to.len().min(spare as usize),
        };
        let mut taken = 0;
        self.first_of(Node(0), Reach::Any, |buddy| {
            taken += buddy.take_frames(table, &mut to[taken..wanted]);
            (taken == wanted).then_some(())
        });
        self.free -= taken as u64;
        taken
    }

    /// Gives contiguous frames back.
    pub fn free(&mut self, table: &FrameTable, extent: Extent) {
        let (first, pages) = extent.into_parts();
        let (mut frame, end) = (first, first + pages);
        // An extent that was joined may lie in two zones.
        while let Some(zone) = self.zone_of(frame).filter(|_| frame < end) {
            let part = end.min(zone.frames.end) - frame;
            zone.buddy.give(table, frame, part);
            frame += part;
            self.free += part;
        }
    }

    /// Gives single frames back. Those that follow each other go as one extent.
    pub fn give(&mut self, table: &FrameTable, frames: &[FrameNo]) {
        // Touch all words first, so that the processor waits for their lines together.
        for &frame in frames {
            black_box(table.owners(frame));
        }
        for run in frames.chunk_by(|frame, next| frame + 1 == *next) {
            self.free(table, Extent::new(run[0], run.len() as u64));
        }
    }

    /// Free frames that a request of this urgency may take.
    fn spare(&self, urgency: Urgency) -> u64 {
        match urgency {
            Urgency::Ordinary => self.free.saturating_sub(self.reserve()),
            Urgency::Critical => self.free,
        }
    }

    fn zone_of(&mut self, frame: FrameNo) -> Option<&mut Zone> {
        self.zones[..self.len]
            .iter_mut()
            .find(|zone| zone.frames.contains(&frame))
    }

    /// What `attempt` gets from the first zone in reach that has it, `node`'s zones first.
    fn first_of<T>(
        &mut self,
        node: Node,
        reach: Reach,
        mut attempt: impl FnMut(&mut Buddy) -> Option<T>,
    ) -> Option<T> {
        [true, false].into_iter().find_map(|near| {
            self.zones[..self.len]
                .iter_mut()
                .filter(|zone| (zone.node == node) == near)
                .filter(|zone| reach == Reach::Any || zone.is_low())
                .find_map(|zone| attempt(&mut zone.buddy))
        })
    }
}

impl Default for Zones {
    fn default() -> Self {
        Self::new()
    }
}
