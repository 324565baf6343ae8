//! How many threads each user has (RLIMIT_NPROC).
//!
//! A thread counts for its real user from its making on; the last one of a process until the
//! parent has waited for it, as its number is taken so long. Root's are not counted: nothing
//! limits them.
//!
//! Threads hold the number of their user, so that it is changed without a lock; only who starts
//! from a user's number looks it up, beside others who do. A number that is 0 leaves the table by
//! who alone has the lock, so none that is found there is forgotten by who counts in it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use mach::sync::RwSpin;
use sync::{Error, Result};

use crate::UNLIMITED;

/// Threads of each user, on the whole machine (RLIMIT_NPROC).
static COUNTS: RwSpin<BTreeMap<u32, Arc<AtomicU64>>> = RwSpin::new(BTreeMap::new());

const ROOT: u32 = 0;

/// What one thread takes of its user's number.
#[derive(Debug)]
pub struct UserShare {
    uid: u32,
    /// `None` for root.
    count: Option<Arc<AtomicU64>>,
}

impl UserShare {
    /// One more thread of `uid`, if that has no more than `limit` then.
    ///
    /// Errors: `WouldBlock`.
    pub fn within(uid: u32, limit: u64) -> Result<Self> {
        let count = match uid {
            ROOT => None,
            _ => Some(count(uid, limit)?),
        };
        Ok(Self { uid, count })
    }

    /// The same without a limit.
    pub fn of(uid: u32) -> Self {
        match Self::within(uid, UNLIMITED) {
            Ok(share) => share,
            Err(_) => Self {
                uid: ROOT,
                count: None,
            },
        }
    }

    /// Whether its user has more than `limit`.
    pub fn is_beyond(&self, limit: u64) -> bool {
        let count = self.count.as_ref();
        count.is_some_and(|count| count.load(SeqCst) > limit)
    }
}

/// Adds one to the user's number.
fn count(uid: u32, limit: u64) -> Result<Arc<AtomicU64>> {
    let add = |count: &Arc<AtomicU64>| {
        let more = |old: u64| (old < limit).then_some(old + 1);
        match count.fetch_update(SeqCst, SeqCst, more) {
            Ok(_) => Ok(count.clone()),
            Err(_) => Err(Error::WouldBlock),
        }
    };
    if limit == 0 {
        // Not after a number of 0 was put into the table, which nobody would take out.
        return Err(Error::WouldBlock);
    }
    if let Some(count) = COUNTS.read().get(&uid) {
        return add(count);
    }
    add(COUNTS.write().entry(uid).or_default())
}

impl Drop for UserShare {
    fn drop(&mut self) {
        let Some(count) = self.count.take() else {
            return;
        };
        if count.fetch_sub(1, SeqCst) == 1 {
            let mut counts = COUNTS.write();
            // Others may have come meanwhile.
            let is_last = |one: &Arc<AtomicU64>| one.load(SeqCst) == 0;
            let gone = match counts.get(&self.uid).is_some_and(is_last) {
                true => counts.remove(&self.uid),
                false => None,
            };
            drop(counts);
            drop(gone);
        }
    }
}
