//! Blocks that are free once the transaction that freed them is committed: the running one, or that under way.
//!
//! After a crash they belong to their old owner, so nobody gets them before.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What transactions freed that are not committed.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    words: BTreeMap<u32, Vec<u64>>,
    runs: Vec<(u32, u32, u32)>,
}

impl Freed {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// What a group's bitmap shows as free and is not, by words.
    pub(crate) fn of_group(&self, number: u32) -> &[u64] {
        self.words.get(&number).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn mark(&self) -> usize {
        self.runs.len()
    }

    /// Takes back what was added since `mark`.
    pub(crate) fn rewind(&mut self, mark: usize) {
        for (group, first, len) in self.runs.split_off(mark) {
            self.set(group, first, len, false);
        }
    }

    /// The first `count` runs are free now.
    pub(crate) fn forget_first(&mut self, count: usize) {
        let later = self.runs.split_off(count.min(self.runs.len()));
        for (group, first, len) in core::mem::replace(&mut self.runs, later) {
            self.set(group, first, len, false);
        }
    }

    pub(crate) fn add(&mut self, group: u32, first: u32, len: u32) {
        self.runs.push((group, first, len));
        self.set(group, first, len, true);
    }

    fn set(&mut self, group: u32, first: u32, len: u32, value: bool) {
        let words = self.words.entry(group).or_default();
        let needed = (first + len).div_ceil(64) as usize;
        if words.len() < needed {
            words.resize(needed, 0);
        }
        for bit in first..first + len {
            if let Some(word) = words.get_mut(bit as usize / 64) {
                *word = *word & !(1 << (bit % 64)) | u64::from(value) << (bit % 64);
            }
        }
    }
}
