//! What /proc says of an address space: areas, and how much of each is resident.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use base::VirtAddr;
use vma::{Area, Traits};

use super::{AddressSpace, Object, Rights};
use crate::file::OpenFile;

/// What an area is called.
#[derive(Clone)]
pub enum Label {
    /// Nothing.
    None,
    /// `[heap]`.
    Heap,
    /// `[stack]`.
    Stack,
    /// A file, by the opening it was mapped through.
    File(Arc<OpenFile>),
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
    /// All areas in ascending order, as they are now.
    pub fn report(&self) -> Vec<AreaReport> {
        let state = self.lock();
        let report = |area: &Area<Object>| AreaReport {
            range: area.start..area.end,
            access: area.access,
            traits: area.traits,
            offset: area.backing.as_ref().map_or(0, |backing| backing.offset),
            label: label(area),
        };
        state.areas.iter().map(report).collect()
    }

    /// Counts the resident pages of a range.
    pub fn usage(&self, range: Range<VirtAddr>) -> AreaUsage {
        let mut usage = AreaUsage::default();
        let Ok(table) = self.table() else {
            return usage;
        };
        table.for_each(range.start, range.end, &mut |_, _, mapping| {
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
        usage
    }
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
