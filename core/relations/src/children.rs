//! Children, and what their parent may hear of them.
//!
//! A program may have as many children as there are numbers: whoever goes through all of them does
//! so in batches ([`BATCH`]), and lets the lock go in between.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::ops::RangeInclusive;

use base::lock::Lock;

use crate::host::{Fate, Host, State};
use crate::{Member, Table};

/// Children that are looked at under one hold of the lock.
const BATCH: usize = 256;

pub(crate) struct Child<H: Host> {
    pub member: Arc<Member<H>>,
    pub state: H::State,
}

pub(crate) struct Children<H: Host> {
    by_id: BTreeMap<u32, Child<H>>,
    /// Those of which something is to be heard.
    changed: BTreeSet<u32>,
    /// Its children were given away.
    pub is_closed: bool,
}

impl<H: Host> Children<H> {
    pub fn new() -> Self {
        Self {
            by_id: BTreeMap::new(),
            changed: BTreeSet::new(),
            is_closed: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn insert(&mut self, child: Child<H>) {
        let id = child.member.id();
        if child.state.has_changed() {
            self.changed.insert(id);
        }
        self.by_id.insert(id, child);
    }

    pub fn pop(&mut self) -> Option<Child<H>> {
        let (id, child) = self.by_id.pop_first()?;
        self.changed.remove(&id);
        Some(child)
    }

    fn next_changed(&self, from: u32) -> Option<u32> {
        self.changed.range(from..).next().copied()
    }

    /// What `act` makes of a child, and the child if it goes.
    fn change<R>(
        &mut self,
        id: u32,
        act: impl FnOnce(&Member<H>, &mut H::State) -> (R, Fate),
    ) -> Option<(R, Option<Child<H>>)> {
        let child = self.by_id.get_mut(&id)?;
        let (result, fate) = act(&child.member, &mut child.state);
        match fate {
            Fate::Stays if child.state.has_changed() => {
                self.changed.insert(id);
            }
            Fate::Stays | Fate::Goes => {
                self.changed.remove(&id);
            }
        }
        let gone = match fate {
            Fate::Stays => None,
            Fate::Goes => self.by_id.remove(&id),
        };
        if let Some(gone) = &gone {
            gone.member.set_parent(None);
        }
        Some((result, gone))
    }
}

impl<H: Host, const PARTS: usize> Table<H, PARTS> {
    /// Changes what a member's parent knows of it; `act` also sees the parent. `None` if it has
    /// none.
    pub fn update<R>(
        &self,
        member: &Member<H>,
        act: impl FnOnce(&mut H::State, &Member<H>) -> (R, Fate),
    ) -> Option<R> {
        loop {
            let parent = member.parent()?;
            let mut children = parent.children.lock();
            if !children.by_id.contains_key(&member.id()) {
                // It was moved, and has another parent by now.
                continue;
            }
            let changed = children.change(member.id(), |_, state| act(state, &parent));
            drop(children);
            return changed.map(|changed| self.finish(changed));
        }
    }

    /// Goes through the children in `range` of which something is to be heard, until `hear` hears
    /// something.
    pub fn hear<R>(
        &self,
        parent: &Member<H>,
        range: RangeInclusive<u32>,
        mut hear: impl FnMut(&Member<H>, &mut H::State) -> Option<(R, Fate)>,
    ) -> Option<R> {
        let mut from = *range.start();
        while from <= *range.end() {
            let mut children = parent.children.lock();
            for _ in 0..BATCH {
                let id = children.next_changed(from).filter(|id| id <= range.end())?;
                let heard = children.change(id, |member, state| match hear(member, state) {
                    Some((result, fate)) => (Some(result), fate),
                    None => (None, Fate::Stays),
                });
                if let Some((Some(result), gone)) = heard {
                    drop(children);
                    return Some(self.finish((result, gone)));
                }
                from = id + 1;
            }
            drop(children);
            H::breathe();
        }
        None
    }

    /// Whether one of the children in `range` is such a one.
    pub fn any_child(
        &self,
        parent: &Member<H>,
        range: RangeInclusive<u32>,
        is_one: impl Fn(&Member<H>, &H::State) -> bool,
    ) -> bool {
        let mut from = *range.start();
        while from <= *range.end() {
            let children = parent.children.lock();
            let mut next = None;
            for (id, child) in children.by_id.range(from..=*range.end()).take(BATCH) {
                if is_one(&child.member, &child.state) {
                    return true;
                }
                next = Some(id + 1);
            }
            drop(children);
            match next {
                Some(next) => from = next,
                None => return false,
            }
            H::breathe();
        }
        false
    }

    fn finish<R>(&self, (result, gone): (R, Option<Child<H>>)) -> R {
        if let Some(gone) = gone {
            self.remove(&gone.member);
        }
        result
    }
}
