//! Mounts and unmounts that happen at other places too: at those of the peers and slaves of the
//! mount below.
//!
//! Who follows a mount is found group by group: first the peers of its own group, then the
//! groups and single mounts that have one of the groups found so far as their master. The copies
//! that the peers of a group get are a group themselves, whose master is the group of the
//! copies that the master's peers got; so what is mounted there later follows the same ways.
//!
//! Mounting is planned first, with all memory it needs, and then done: it cannot fail half way.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use mach::mem::fallible::{self, TryGrow};
use sched::resched_point;
use sync::{Error, Result};

use super::Dentry;
use super::propagation::{Group, Propagation};
use super::table;
use super::tree::Tree;
use super::{MOST, Mount, Path};

/// A group among those that follow a mount.
struct Follow {
    group: Group,
    /// The place of its master in the list; the first has none there.
    master: usize,
}

/// Who follows a mount.
#[derive(Default)]
struct Followers {
    groups: Vec<Follow>,
    /// Each mount with the place of its group, or of its master's if it is a slave alone.
    mounts: Vec<(Arc<Mount>, usize)>,
}

impl Followers {
    /// Those of `origin`.
    ///
    /// Errors: `OutOfMemory`.
    fn of(origin: &Arc<Mount>) -> Result<Self> {
        let mut found = Self::default();
        let Some(group) = origin.propagation().group else {
            return Ok(found);
        };
        found.add_group(group, 0)?;
        let mut next = 0;
        while let Some(follow) = found.groups.get(next) {
            let group = follow.group;
            for mount in table::listed() {
                found.look_at(mount, origin, group, next)?;
            }
            next += 1;
            resched_point();
        }
        Ok(found)
    }

    fn add_group(&mut self, group: Group, master: usize) -> Result<()> {
        self.groups.make_room(1)?;
        self.groups.push(Follow { group, master });
        Ok(())
    }

    /// Notes `mount` if it is of `group`, or is told by it.
    fn look_at(
        &mut self,
        mount: Arc<Mount>,
        origin: &Arc<Mount>,
        group: Group,
        place: usize,
    ) -> Result<()> {
        let propagation = mount.propagation();
        let is_peer = propagation.group == Some(group) && !Arc::ptr_eq(&mount, origin);
        let is_told = propagation.master == Some(group);
        match propagation.group {
            Some(own) if is_told => match self.groups.iter().any(|known| known.group == own) {
                true => Ok(()),
                false => self.add_group(own, place),
            },
            _ if is_peer || is_told => {
                self.mounts.make_room(1)?;
                self.mounts.push((mount, place));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The copies of a tree for all who follow the mount that it is mounted on.
pub(super) struct Echoes {
    /// The groups of the tree's own mounts; empty if nobody is told.
    groups: Vec<Propagation>,
    copies: Vec<(Arc<Mount>, Tree)>,
    /// Room for mounts that change their place in the table.
    moved: Vec<Arc<Mount>>,
}

impl Echoes {
    /// What has to be mounted elsewhere if `tree` is mounted at `at`.
    ///
    /// Errors: `NoSpace` if that is too much, `OutOfMemory`.
    pub fn plan(tree: &Tree, at: &Path) -> Result<Self> {
        let mut echoes = Self {
            groups: Vec::new(),
            copies: Vec::new(),
            moved: Vec::new(),
        };
        if at.mount.propagation().group.is_none() {
            return Ok(echoes);
        }
        let followers = Followers::of(&at.mount)?;
        let groups = groups_of_copies(tree, &followers)?;
        for (mount, place) in followers.mounts {
            if mount.root.is_above(&at.dentry) {
                echoes.add(tree, mount, &groups[place])?;
            }
        }
        echoes.groups = groups.into_iter().next().unwrap_or_default();
        echoes.moved = fallible::vec(MOST)?;
        Ok(echoes)
    }

    /// Plans a copy at `mount`, among copies of these groups.
    fn add(&mut self, tree: &Tree, mount: Arc<Mount>, groups: &[Propagation]) -> Result<()> {
        if self.len() + tree.len() > MOST {
            return Err(Error::NoSpace);
        }
        let is_slave = mount.propagation().group.is_none();
        let copy = tree.copy_as(|index| match is_slave {
            false => groups[index],
            true => Propagation {
                group: None,
                master: groups[index].group,
            },
        })?;
        self.copies.make_room(1)?;
        self.copies.push((mount, copy));
        Ok(())
    }

    /// How many mounts are to be made.
    pub fn len(&self) -> usize {
        self.copies.iter().map(|(_, copy)| copy.len()).sum()
    }

    /// Mounts the copies at `dentry` as their followers show it, now that `tree` is mounted; there
    /// is room for them.
    pub fn mount(mut self, tree: &Tree, dentry: &Arc<Dentry>) {
        for (mount, propagation) in tree.mounts().zip(&self.groups) {
            mount.set_propagation(*propagation);
            mount.set_unbindable(false);
        }
        for (mount, copy) in self.copies {
            let dentry = dentry.clone();
            mount_below(&copy, Path { mount, dentry }, &mut self.moved);
        }
    }
}

/// Mounts a copy under what covers its place already.
fn mount_below(copy: &Tree, at: Path, moved: &mut Vec<Arc<Mount>>) {
    let above = table::covering(&at);
    copy.list();
    if let Some(above) = &above {
        drop(table::detach(above));
    }
    table::attach(copy.top(), at);
    if let Some(above) = above {
        table::select(&above);
        table::move_selected_to_end(moved);
        table::attach(&above, Path::top_of(copy.top()));
    }
}

/// What each mount of the tree is, copied for the peers of each group of followers; first what
/// the tree's own mounts become.
fn groups_of_copies(tree: &Tree, followers: &Followers) -> Result<Vec<Vec<Propagation>>> {
    let mut all: Vec<Vec<Propagation>> = fallible::vec(followers.groups.len())?;
    for (place, follow) in followers.groups.iter().enumerate() {
        let mut groups = fallible::vec(tree.len())?;
        for (index, mount) in tree.mounts().enumerate() {
            let own = mount.propagation();
            groups.push(match place {
                0 => Propagation {
                    group: own.group.or_else(|| Some(Group::new())),
                    ..own
                },
                _ => Propagation {
                    group: Some(Group::new()),
                    master: all[follow.master][index].group,
                },
            });
        }
        all.push(groups);
    }
    Ok(all)
}

/// Selects what is unmounted with the selected mounts: what covers the same place for those who
/// follow the mount below, unless more is mounted there.
///
/// Errors: `OutOfMemory`.
pub(super) fn select_echoes() -> Result<()> {
    let mut found: Vec<Arc<Mount>> = Vec::new();
    for going in table::selected() {
        resched_point();
        let Some(at) = going.covers() else {
            continue;
        };
        for (mount, _) in Followers::of(&at.mount)?.mounts {
            let dentry = at.dentry.clone();
            if let Some(echo) = table::covering(&Path { mount, dentry }) {
                found.make_room(1)?;
                found.push(echo);
            }
        }
    }
    found.iter().for_each(|echo| echo.set_selected(true));
    keep_used();
    Ok(())
}

/// Unselects what carries mounts that stay. A mount is behind the one that it covers, so the way
/// back meets all that a mount carries before the mount. What covers its very top will take its
/// place.
fn keep_used() {
    for mount in table::listed_from_last() {
        if mount.carries_more.swap(false, Ordering::Relaxed) {
            mount.set_selected(false);
        }
        if !mount.is_selected()
            && let Some(at) = mount.covers().filter(|at| !at.is_mount_top())
        {
            at.mount.carries_more.store(true, Ordering::Relaxed);
        }
    }
}
