//! Sets that watch sets: no cycles, and no long chains.
//!
//! Each set knows its parents. Adding a child looks upwards only: the parents of the
//! parent, level by level, must not include the child, and with the child's own height
//! there must be no more than [`LEVELS_MAX`]. Additions are serialised by one lock, so
//! two of them cannot close a cycle together.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use base::Memory;
use base::lock::Lock;

use crate::host::{Host, Open, Refusal};
use crate::{Set, Watch};

/// Sets above one another, as in Linux (EP_MAX_NESTS and the watched file).
const LEVELS_MAX: usize = 5;

/// The right to change who watches whom: there is one for all sets, behind a lock.
#[derive(Debug, Default)]
pub struct Nesting(());

impl Nesting {
    /// The one.
    pub const fn new() -> Self {
        Self(())
    }

    /// Makes `parent` a parent of `child`.
    pub(crate) fn enter<H: Host>(
        &mut self,
        parent: &Set<H>,
        child: &Set<H>,
    ) -> Result<(), Refusal> {
        if core::ptr::eq(parent, child) {
            return Err(Refusal::Invalid);
        }
        let above = levels_above(parent, child)?;
        if above + levels_below(child)? > LEVELS_MAX {
            return Err(Refusal::TooDeep);
        }
        let mut parents = child.parents.lock();
        if parents.len() == parents.capacity() {
            // Those that ended go first, so that no program fills the list with them.
            parents.retain(|parent| parent.strong_count() != 0);
        }
        if parents.len() == parents.capacity() {
            H::Memory::reserve(|| parents.try_reserve(1))?;
        }
        parents.push(parent.me.clone());
        Ok(())
    }

    /// Takes back one [`Nesting::enter`].
    pub(crate) fn leave<H: Host>(&mut self, parent: &Set<H>, child: &Set<H>) {
        let mut parents = child.parents.lock();
        if let Some(index) = parents.iter().position(|other| other.ptr_eq(&parent.me)) {
            parents.swap_remove(index);
        }
    }
}

type Level<H> = Vec<Arc<Set<H>>>;

/// Levels from `start` upwards, itself included; an error if `child` is among them.
fn levels_above<H: Host>(start: &Set<H>, child: &Set<H>) -> Result<usize, Refusal> {
    let mut level = first_level(start)?;
    let mut count = 0;
    while !level.is_empty() {
        if level.iter().any(|set| core::ptr::eq(&**set, child)) {
            return Err(Refusal::TooDeep);
        }
        count += 1;
        level = next_level(&level, Set::add_parents)?;
    }
    Ok(count)
}

/// Levels from `start` downwards, itself included.
fn levels_below<H: Host>(start: &Set<H>) -> Result<usize, Refusal> {
    let mut level = first_level(start)?;
    let mut count = 0;
    while !level.is_empty() {
        count += 1;
        level = next_level(&level, Set::add_children)?;
    }
    Ok(count)
}

fn first_level<H: Host>(start: &Set<H>) -> Result<Level<H>, Refusal> {
    let mut level = Vec::new();
    add(&mut level, start.me.upgrade())?;
    Ok(level)
}

/// The sets that `add` finds for those of a level, each once.
fn next_level<H: Host>(
    level: &[Arc<Set<H>>],
    add: fn(&Set<H>, &mut Level<H>) -> Result<(), Refusal>,
) -> Result<Level<H>, Refusal> {
    let mut next = Vec::new();
    for set in level {
        add(set, &mut next)?;
    }
    next.sort_unstable_by_key(|set| Arc::as_ptr(set).addr());
    next.dedup_by_key(|set| Arc::as_ptr(set).addr());
    Ok(next)
}

fn add<H: Host>(to: &mut Level<H>, set: Option<Arc<Set<H>>>) -> Result<(), Refusal> {
    if let Some(set) = set {
        H::Memory::reserve(|| to.try_reserve(1))?;
        to.push(set);
    }
    Ok(())
}

impl<H: Host> Set<H> {
    /// Watches `open`, which is the set `child`.
    pub fn add_set(
        &self,
        fd: u32,
        (open, child): (&Arc<H::Open>, &Self),
        watch: Watch,
        nesting: &mut Nesting,
    ) -> Result<(), Refusal> {
        if watch.is_exclusive() {
            return Err(Refusal::Invalid);
        }
        nesting.enter(self, child)?;
        let added = self.add(fd, open, watch);
        if added.is_err() {
            nesting.leave(self, child);
        }
        added
    }

    /// Watches the set `child` behind `open` no longer.
    pub fn remove_set(
        &self,
        fd: u32,
        (open, child): (&Arc<H::Open>, &Self),
        nesting: &mut Nesting,
    ) -> Result<(), Refusal> {
        self.remove(fd, open)?;
        nesting.leave(self, child);
        Ok(())
    }

    fn add_parents(&self, to: &mut Level<H>) -> Result<(), Refusal> {
        let parents = self.parents.lock();
        let mut parents = parents.iter().map(Weak::upgrade);
        parents.try_for_each(|parent| add(to, parent))
    }

    fn add_children(&self, to: &mut Level<H>) -> Result<(), Refusal> {
        let mut open = Vec::new();
        self.add_open(&mut open)?;
        let open = open.iter().filter_map(Weak::upgrade);
        open.map(|open| open.nested())
            .try_for_each(|child| add(to, child))
    }
}
