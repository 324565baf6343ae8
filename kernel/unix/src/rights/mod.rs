//! Descriptors under way in messages (SCM_RIGHTS).
//!
//! A user may have as many of them under way as a program may have open, as in Linux: more are
//! refused with [`Error::TooManyReferences`]. Sockets that are sent through each other may
//! become such that nobody can receive them any more; [`collect`] finds and
//! closes them.
//!
//! Dropping a message may drop a socket that holds further messages, and so on. They are
//! dropped one after the other from a list, not by recursion, which would use up the
//! stack.

pub(crate) mod collect;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cred::{Capability, Resource};
use mach::sync::Spin;
use sched::resched_point;
use sync::{Error, Result};
use task::current;

use vfs::file::OpenFile;

/// Descriptors that each user has under way. A user's processes need have nothing in common but the
/// user.
static USERS: Spin<BTreeMap<u32, usize>> = Spin::new(BTreeMap::new());

/// Openings that a message carries.
pub(super) struct Rights {
    files: Vec<Arc<OpenFile>>,
    /// Whose they count as.
    user: u32,
    /// The socket in whose queue the message lies.
    holder: Option<u64>,
}

impl Rights {
    /// Counts `files` as under way; [`Error::TooManyReferences`] if there are too many.
    pub(super) fn new(files: Vec<Arc<OpenFile>>) -> Result<Self> {
        let user = current()
            .credentials
            .with(|credentials| credentials.user.real);
        if is_at_limit(user) {
            collect::run();
            if is_at_limit(user) {
                return Err(Error::TooManyReferences);
            }
        }
        *USERS.lock().entry(user).or_default() += files.len();
        files.iter().for_each(collect::take_up);
        Ok(Self {
            files,
            user,
            holder: None,
        })
    }

    /// The message comes to lie in the queue of the socket `holder`.
    pub(super) fn put(&mut self, holder: u64) {
        self.files
            .iter()
            .for_each(|file| collect::put(holder, file));
        self.holder = Some(holder);
    }

    /// For the receiver: they are under way no longer.
    pub(super) fn open(mut self) -> Vec<Arc<OpenFile>> {
        self.release()
    }

    /// For a receiver that only looks.
    pub(super) fn peek(&self) -> Vec<Arc<OpenFile>> {
        collect::note_peek();
        self.files.clone()
    }

    fn release(&mut self) -> Vec<Arc<OpenFile>> {
        let files = core::mem::take(&mut self.files);
        for file in &files {
            collect::lay_down(self.holder, file);
        }
        let mut users = USERS.lock();
        if let Some(count) = users.get_mut(&self.user) {
            *count -= files.len().min(*count);
            if *count == 0 {
                users.remove(&self.user);
            }
        }
        files
    }
}

/// Whether the user may have no more descriptors under way.
fn is_at_limit(user: u32) -> bool {
    let me = current();
    let limit = me.process.limits.soft(Resource::Files);
    let count = USERS.lock().get(&user).copied().unwrap_or(0);
    let is_bound =
        |of: &cred::Credentials| !of.has(Capability::SysResource) && !of.has(Capability::SysAdmin);
    count as u64 > limit && me.credentials.with(|credentials| is_bound(credentials))
}

impl Drop for Rights {
    fn drop(&mut self) {
        let files = self.release();
        if !files.is_empty() {
            bury(files);
        }
    }
}

/// What waits to be dropped, and whether somebody is at it.
struct DeferredDrops {
    files: Vec<Arc<OpenFile>>,
    is_tended: bool,
}

/// Files of queues that are gone: nobody is left to own them.
static GRAVEYARD: Spin<DeferredDrops> = Spin::new(DeferredDrops {
    files: Vec::new(),
    is_tended: false,
});

/// Drops `files`, or leaves that to the caller further out who is dropping already.
fn bury(mut files: Vec<Arc<OpenFile>>) {
    {
        let mut graveyard = GRAVEYARD.lock();
        graveyard.files.append(&mut files);
        if graveyard.is_tended {
            return;
        }
        graveyard.is_tended = true;
    }
    while let Some(file) = next() {
        drop(file);
        resched_point();
    }
}

fn next() -> Option<Arc<OpenFile>> {
    let mut graveyard = GRAVEYARD.lock();
    let file = graveyard.files.pop();
    graveyard.is_tended = file.is_some();
    file
}
