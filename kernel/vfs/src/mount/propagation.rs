//! Which mounts are told of each other's changes (mount_namespaces(7), "Shared subtrees").
//!
//! Mounts of a peer group tell each other what is mounted and unmounted below them. A group may
//! have a master: what happens there happens here too, but not the other way. A group is no
//! more than a number that mounts have: who its members are is found by a look at all mounts, so
//! there is no second record to be kept right.
//!
//! Invariants, under `CHANGING`: all peers of a group have the same master, and a master is a
//! group that still has members.

use alloc::sync::Arc;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{Mount, MountFlags, table};

/// A peer group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group(NonZeroU32);

impl Group {
    /// One that no mount has yet.
    pub(super) fn new() -> Self {
        /// Groups span namespaces, so their numbers are the machine's.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed));
        Self(number.unwrap_or(NonZeroU32::MAX))
    }

    /// As /proc/self/mountinfo shows it.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

/// Whom a mount tells of changes, and who tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Propagation {
    /// The group whose members tell each other.
    pub group: Option<Group>,
    /// The group that tells only.
    pub master: Option<Group>,
}

/// What a mount can be made (mount(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PropagationType {
    /// A member of a group: it tells and is told.
    Shared,
    /// It neither tells nor is told.
    Private,
    /// It is told by the group that it was in.
    Slave,
    /// It is private and cannot be bound elsewhere.
    Unbindable,
}

impl Mount {
    /// Whom it tells, and who tells it.
    pub fn propagation(&self) -> Propagation {
        *self.propagation.lock()
    }

    pub(super) fn set_propagation(&self, propagation: Propagation) {
        *self.propagation.lock() = propagation;
    }

    pub(super) fn set_unbindable(&self, unbindable: bool) {
        let bit = MountFlags::UNBINDABLE.bits();
        match unbindable {
            true => self.flags.fetch_or(bit, Ordering::SeqCst),
            false => self.flags.fetch_and(!bit, Ordering::SeqCst),
        };
    }
}

/// Makes `mount` what mount(2) says.
pub(super) fn set_type(mount: &Arc<Mount>, wanted: PropagationType) {
    if wanted != PropagationType::Slave {
        mount.set_unbindable(wanted == PropagationType::Unbindable);
    }
    if wanted == PropagationType::Shared {
        return share(mount);
    }
    let master = leave_group(mount);
    mount.set_propagation(Propagation {
        group: None,
        master: master.filter(|_| wanted == PropagationType::Slave),
    });
}

/// Puts a mount that has no group into a new one.
fn share(mount: &Mount) {
    let now = mount.propagation();
    mount.set_propagation(Propagation {
        group: now.group.or_else(|| Some(Group::new())),
        ..now
    });
}

/// Takes a mount out of its group, and says who told it: the others of the group, or if there
/// are none the group's master, which has the slaves from then on.
pub(super) fn leave_group(mount: &Mount) -> Option<Group> {
    let Propagation { group, master } = mount.propagation();
    let Some(group) = group else {
        return master;
    };
    mount.set_propagation(Propagation {
        group: None,
        master,
    });
    if table::listed().any(|other| other.propagation().group == Some(group)) {
        return Some(group);
    }
    for slave in table::listed().filter(|other| other.propagation().master == Some(group)) {
        slave.set_propagation(Propagation {
            master,
            ..slave.propagation()
        });
    }
    master
}
