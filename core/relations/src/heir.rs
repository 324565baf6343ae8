//! Who gets the children of a process that ends: the nearest living ancestor that is a reaper, else
//! the first process.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::lock::Lock;

use crate::children::Child;
use crate::host::{Fate, Host};
use crate::{Member, Table};

/// Children that move under one hold of the locks.
const BATCH: usize = 64;
/// Steps of a climb until others may run.
const STEPS: usize = 256;

/// Children that have moved to another parent.
pub struct Orphans<H: Host> {
    /// Their new parent.
    pub heir: Arc<Member<H>>,
    /// They.
    pub children: Vec<Arc<Member<H>>>,
}

impl<H: Host, const PARTS: usize> Table<H, PARTS> {
    /// Gives a new member to its parent, or to the heir of one that has ended.
    pub(crate) fn bear(&self, parent: Arc<Member<H>>, member: Arc<Member<H>>, state: H::State) {
        let mut next = Some(parent);
        while let Some(parent) = next {
            let mut children = parent.children.lock();
            if !children.is_closed {
                let child = Child { member, state };
                child.member.set_parent(Some(parent.clone()));
                children.insert(child);
                return;
            }
            drop(children);
            next = self.heir_of(&parent);
        }
    }

    /// Gives some children of `dying` to its heir; `None` once it has none, and will have none. What
    /// becomes of each `adopt` decides, who sees child and heir.
    pub fn give_away(
        &self,
        dying: &Arc<Member<H>>,
        mut adopt: impl FnMut(&Member<H>, &mut H::State, &Member<H>) -> Fate,
    ) -> Option<Orphans<H>> {
        let mut heir = self.heir_of(dying);
        loop {
            if close_if_empty(dying) {
                return None;
            }
            let at = heir?;
            if let Some(children) = self.move_some(dying, &at, &mut adopt) {
                return Some(Orphans { heir: at, children });
            }
            heir = self.heir_of(&at);
        }
    }

    /// Moves some children to `heir`; `None` if that takes none any more.
    fn move_some(
        &self,
        dying: &Arc<Member<H>>,
        heir: &Arc<Member<H>>,
        adopt: &mut impl FnMut(&Member<H>, &mut H::State, &Member<H>) -> Fate,
    ) -> Option<Vec<Arc<Member<H>>>> {
        let mut old = dying.children.lock();
        let mut new = heir.children.lock();
        if new.is_closed {
            return None;
        }
        let (mut children, mut gone) = (Vec::new(), Vec::new());
        while children.len() < BATCH
            && let Some(mut child) = old.pop()
        {
            children.push(child.member.clone());
            match adopt(&child.member, &mut child.state, heir) {
                Fate::Stays => {
                    child.member.set_parent(Some(heir.clone()));
                    new.insert(child);
                }
                Fate::Goes => {
                    child.member.set_parent(None);
                    gone.push(child);
                }
            }
        }
        drop((old, new));
        gone.iter().for_each(|child| self.remove(&child.member));
        Some(children)
    }

    /// The nearest ancestor that is a reaper, or the first process, unless that is `member`.
    fn heir_of(&self, member: &Arc<Member<H>>) -> Option<Arc<Member<H>>> {
        // Another one has ended and is forgotten, where a climb ends early.
        let init = || self.init().filter(|init| !Arc::ptr_eq(init, member));
        let mut at = member.clone();
        while H::has_reapers() {
            for _ in 0..STEPS {
                match at.parent() {
                    Some(parent) => at = parent,
                    None => return init(),
                }
                if H::is_reaper(at.process()) {
                    return Some(at);
                }
            }
            H::breathe();
        }
        init()
    }
}

/// Closes the children of `dying` if it has none; whether that is so.
fn close_if_empty<H: Host>(dying: &Member<H>) -> bool {
    let mut children = dying.children.lock();
    children.is_closed = children.is_empty();
    children.is_closed
}
