//! What a CPU does for its caches while it has nothing else to do.

use crate::Urgency;
use crate::local::{BATCH, Backing, HUGE_PAGES, LocalFrames};

impl LocalFrames {
    /// Zeroes one frame for later; false if there is nothing to do. Leaves room for a
    /// batch of zeroed frames, and leaves frames that nobody has used alone, apart
    /// from the first batches: an idle machine should not touch all of its memory.
    pub fn zero_one(&self, backing: &impl Backing) -> bool {
        if self.shuffle.is_on() {
            return false;
        }
        self.zero_single(backing) || self.zero_part_of_huge(backing)
    }

    fn zero_single(&self, backing: &impl Backing) -> bool {
        if self.zeroed_room() <= BATCH {
            return false;
        }
        if self.any.is_empty() {
            self.refill(backing, Urgency::Ordinary);
        }
        let Some(frame) = self.any.pop() else {
            return false;
        };
        backing.zero(frame);
        self.counts.zeroed_idle.add(1);
        match self.zeroed.push(frame) {
            Ok(()) => true,
            Err(frame) => self.any.push(frame).is_ok(),
        }
    }

    fn zero_part_of_huge(&self, backing: &impl Backing) -> bool {
        let next = (0..self.huge.len()).rev().find_map(|index| {
            let first = self.huge.get(index)?;
            backing.table().first_unknown(first, HUGE_PAGES)
        });
        let Some(frame) = next else { return false };
        backing.zero(frame);
        self.counts.zeroed_idle.add(1);
        backing.table().note_zero(frame);
        true
    }

    /// Gives back all that rests here, for others who find nothing.
    pub fn flush(&self, backing: &impl Backing) {
        let (zones, table) = (backing.zones(), backing.table());
        self.return_huge(zones, table);
        while let Some(frame) = self.zeroed.pop() {
            table.note_zero(frame);
            zones.give(table, &[frame]);
        }
        let single = || self.any.pop().or_else(|| self.far.pop());
        while let Some(frame) = single().or_else(|| self.shuffle.pool().pop()) {
            zones.give(table, &[frame]);
        }
    }
}
