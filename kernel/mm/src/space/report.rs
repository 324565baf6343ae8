//! What /proc says of an address space: areas, and how much of each is resident.

use core::ops::Range;

use base::VirtAddr;
use mach::mem::{PageTable, USER_END};
use sched::resched_point;
use vma::{Area, Traits};

use super::{AddressSpace, MappedFile, Object, Rights};

/// What an area is called.
#[derive(Clone)]
pub enum Label {
    /// Nothing.
    None,
    /// `[heap]`.
    Heap,
    /// `[stack]`.
    Stack,
    /// A file, by the open file it was mapped through.
    File(MappedFile),
    /// Something else of this name.
    Other(&'static str),
}

/// One area.
#[derive(Clone)]
pub struct AreaReport {
    /// Its addresses.
    pub range: Range<VirtAddr>,
    /// What the program may do.
    pub access: Rights,
    /// Its other properties.
    pub traits: Traits,
    /// The byte of its object where it starts.
    pub offset: u64,
    /// Its name.
    pub label: Label,
}

/// What is added up over all areas.
pub struct AreaFacts {
    /// Its length.
    pub bytes: u64,
    /// What the program may do.
    pub access: Rights,
    /// Its other properties.
    pub traits: Traits,
    /// Whether it is the stack of the first thread.
    pub is_stack: bool,
}

/// The resident pages of an area.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AreaUsage {
    /// All.
    pub resident: u64,
    /// That other owners have, too, clean and dirty.
    pub shared_clean: u64,
    /// Shared and stored to.
    pub shared_dirty: u64,
    /// That only this space has, clean.
    pub private_clean: u64,
    /// Only here and stored to.
    pub private_dirty: u64,
    /// Used since they were mapped.
    pub referenced: u64,
    /// Parts of large pages.
    pub large: u64,
}

impl AddressSpace {
    /// The first area that ends above `at`.
    pub fn area_above(&self, at: VirtAddr) -> Option<AreaReport> {
        let state = self.lock();
        let area = state.areas.overlapping(at..USER_END).next()?;
        Some(AreaReport {
            range: area.start..area.end,
            access: area.access,
            traits: area.traits,
            offset: area.backing.as_ref().map_or(0, |backing| backing.offset),
            label: label(area),
        })
    }

    /// The areas from the one that ends above `at` on, in ascending order, each as it is when
    /// its turn comes: the space is not locked in between.
    pub fn areas_above(&self, at: VirtAddr) -> impl Iterator<Item = AreaReport> {
        let mut next = at;
        core::iter::from_fn(move || {
            let area = self.area_above(next)?;
            next = area.range.end;
            Some(area)
        })
    }

    /// Adds up `count` of all areas.
    pub fn sums<const N: usize>(&self, count: impl Fn(&AreaFacts) -> [u64; N]) -> [u64; N] {
        let state = self.lock();
        let mut sums = [0; N];
        for area in state.areas.iter() {
            let more = count(&AreaFacts {
                bytes: area.end - area.start,
                access: area.access,
                traits: area.traits,
                is_stack: area.backing.is_none() && area.traits.grows_down,
            });
            sums.iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum += more);
        }
        sums
    }

    /// Counts the resident pages of a range, some at a time.
    pub fn usage(&self, range: Range<VirtAddr>) -> AreaUsage {
        let mut usage = AreaUsage::default();
        let Ok(table) = self.table() else {
            return usage;
        };
        let mut from = range.start;
        while from < range.end {
            let end = table.piece_end(from, range.end);
            count_piece(table, from..end, &mut usage);
            from = end;
            resched_point();
        }
        usage
    }
}

fn count_piece(table: &PageTable, piece: Range<VirtAddr>, usage: &mut AreaUsage) {
    table.for_each(piece.start, piece.end, &mut |_, _, mapping| {
        if mapping.zeros {
            return;
        }
        usage.resident += 1;
        usage.referenced += u64::from(mapping.accessed);
        usage.large += u64::from(mapping.large);
        let count = match (mapping.shared, mapping.dirty) {
            (true, false) => &mut usage.shared_clean,
            (true, true) => &mut usage.shared_dirty,
            (false, false) => &mut usage.private_clean,
            (false, true) => &mut usage.private_dirty,
        };
        *count += 1;
    });
}

fn label(area: &Area<Object>) -> Label {
    let Some(backing) = &area.backing else {
        return match area.traits {
            Traits { heap: true, .. } => Label::Heap,
            Traits {
                grows_down: true, ..
            } => Label::Stack,
            _ => Label::None,
        };
    };
    match &backing.object.file {
        Some(file) => Label::File(file.clone()),
        None => Label::Other(backing.object.memory.label()),
    }
}
