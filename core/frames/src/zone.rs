//! The free frames of one zone, as its lock protects them.

use crate::buddy::{Buddy, largest_order};
use crate::{Extent, FrameNo, FrameTable, NODES_MAX, Node, ORDERS, Urgency};

/// One frame in this many is reserved for [`Urgency::Critical`], on large machines.
///
/// The kernel's calls under way live from it, once its first half is gone and programs are
/// refused calls that keep something: on each CPU one call that runs, and one for each thread
/// that waits in the kernel and then goes on. A call takes few objects that it cannot be
/// refused, on average less than 128 bytes where it goes on after a wait; there are no more
/// threads than memory for their stacks (16 KiB each and more), so 1/128 of memory is enough.
const RESERVE_SHARE: u64 = 64;
/// Frames that are reserved on small machines: half of them for what runs on each CPU (no
/// more than 16 KiB in a call), and for slabs that one object of each class begins.
const RESERVE_MIN: u64 = 512;
/// But never more than one frame in this many.
const RESERVE_SHARE_MAX: u64 = 16;

/// Frames among a zone's `managed` ones that only critical requests may take.
pub const fn reserve_of(managed: u64) -> u64 {
    let (share, most) = (managed / RESERVE_SHARE, managed / RESERVE_SHARE_MAX);
    let least = if most < RESERVE_MIN {
        most
    } else {
        RESERVE_MIN
    };
    if share > least { share } else { least }
}

/// What one zone has; see [`crate::Zones`], which alone changes it.
#[derive(Debug)]
pub struct Zone {
    pub(crate) managed: u64,
    pub(crate) free: u64,
    /// Frames that CPUs of each node took.
    taken: [u64; NODES_MAX],
    buddy: Buddy,
}

impl Zone {
    /// Without frames.
    pub const EMPTY: Self = Self {
        managed: 0,
        free: 0,
        taken: [0; NODES_MAX],
        buddy: Buddy::new(),
    };

    /// Free blocks of each order.
    pub(crate) const fn blocks(&self) -> [u64; ORDERS] {
        self.buddy.blocks()
    }

    /// Frames that CPUs of each node took.
    pub(crate) const fn taken(&self) -> [u64; NODES_MAX] {
        self.taken
    }

    /// See [`crate::Zones::donate`]: those of these frames that the table describes.
    pub(crate) fn donate(&mut self, table: &FrameTable, first: FrameNo, end: FrameNo) {
        let mut frame = first;
        while frame < end {
            let mut order = largest_order(frame, end - frame);
            while order > 0 && !table.describes(frame, 1 << order) {
                order -= 1;
            }
            if table.describes(frame, 1 << order) {
                self.buddy.give_block(table, frame, order);
                self.managed += 1 << order;
                self.free += 1 << order;
            }
            frame += 1 << order;
        }
    }

    /// Contiguous frames for a CPU of `from`, as [`crate::Zones::alloc`].
    #[inline]
    pub(crate) fn alloc(
        &mut self,
        table: &FrameTable,
        pages: u64,
        urgency: Urgency,
        from: Node,
    ) -> Option<Extent> {
        if pages > self.spare(urgency) {
            return None;
        }
        let size = pages.next_power_of_two();
        let first = self.buddy.take_block(table, size.trailing_zeros() as u8)?;
        self.buddy.give(table, first + pages, size - pages);
        self.note_taken(pages, from);
        Some(Extent::new(first, pages))
    }

    /// Single frames into `to`, as many as may be taken; returns how many.
    pub(crate) fn take(
        &mut self,
        table: &FrameTable,
        to: &mut [FrameNo],
        urgency: Urgency,
        from: Node,
    ) -> usize {
        let wanted = to.len().min(self.spare(urgency) as usize);
        let taken = self.buddy.take_frames(table, &mut to[..wanted]);
        self.note_taken(taken as u64, from);
        taken
    }

    #[inline]
    fn note_taken(&mut self, pages: u64, from: Node) {
        self.free -= pages;
        self.taken[usize::from(from.0) % NODES_MAX] += pages;
    }

    /// Gives back frames that lie in this zone.
    #[inline]
    pub(crate) fn give(&mut self, table: &FrameTable, first: FrameNo, pages: u64) {
        self.buddy.give(table, first, pages);
        self.free += pages;
    }

    /// Free frames that a request of this urgency may take.
    fn spare(&self, urgency: Urgency) -> u64 {
        match urgency {
            Urgency::Ordinary => self.free.saturating_sub(reserve_of(self.managed)),
            Urgency::Critical => self.free,
        }
    }
}
