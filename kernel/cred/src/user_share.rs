//! How many threads each user has (RLIMIT_NPROC).
//!
//! A thread counts for its real user from its making on; the last one of a process until the
//! parent has waited for it, as its number is taken so long. Root's are not counted: nothing
//! limits them.

use alloc::collections::BTreeMap;

use mach::sync::Spin;
use sync::{Error, Result};

use crate::UNLIMITED;

/// Threads of each user, on the whole machine (RLIMIT_NPROC).
static COUNTS: Spin<BTreeMap<u32, u64>> = Spin::new(BTreeMap::new());

const ROOT: u32 = 0;

/// What one thread takes of its user's number.
#[derive(Debug)]
pub struct UserShare(u32);

impl UserShare {
    /// One more thread of `uid`, if that has no more than `limit` then.
    ///
    /// Errors: `WouldBlock`.
    pub fn within(uid: u32, limit: u64) -> Result<Self> {
        if uid != ROOT {
            let mut counts = COUNTS.lock();
            let count = counts.get(&uid).copied().unwrap_or(0) + 1;
            if count > limit {
                return Err(Error::WouldBlock);
            }
            counts.insert(uid, count);
        }
        Ok(Self(uid))
    }

    /// The same without a limit.
    pub fn of(uid: u32) -> Self {
        match Self::within(uid, UNLIMITED) {
            Ok(share) => share,
            Err(_) => Self(ROOT),
        }
    }

    /// Whether its user has more than `limit`.
    pub fn is_beyond(&self, limit: u64) -> bool {
        self.0 != ROOT
            && COUNTS
                .lock()
                .get(&self.0)
                .is_some_and(|&count| count > limit)
    }
}

impl Drop for UserShare {
    fn drop(&mut self) {
        if self.0 == ROOT {
            return;
        }
        let mut counts = COUNTS.lock();
        match counts.get_mut(&self.0) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.0)),
        }
    }
}
