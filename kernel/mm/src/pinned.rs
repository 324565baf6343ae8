//! Pinned pages, counted: to their user, and against what may be pinned for a purpose.
//!
//! A page that is pinned cannot be given to anybody else, whatever happens to its program. So each
//! counts for the user (RLIMIT_MEMLOCK, unless the program may lock all it likes), and all that
//! are pinned for one purpose together are a share of the machine's memory.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::PAGE_BYTES;
use cred::{Account, Capability, Charge, Counted, Resource, UNLIMITED};
use sync::{Error, Result};

/// What may be pinned for a purpose.
pub struct Budget {
    /// It is at most this share of memory.
    share: usize,
    held: AtomicUsize,
}

impl Budget {
    /// One part in `share` of the machine's memory.
    pub const fn new(share: usize) -> Self {
        Self {
            share,
            held: AtomicUsize::new(0),
        }
    }

    /// Counts `pages` for the running program's user and for the purpose.
    ///
    /// Errors: `beyond` for too many.
    pub fn hold(&'static self, pages: usize, beyond: Error) -> Result<Held> {
        let charge = charge(pages as u64, beyond)?;
        let mut held = Held {
            budget: self,
            pages: 0,
            _charge: charge,
        };
        held.count(pages, beyond)?;
        Ok(held)
    }

    /// None yet of the kernel's own for the purpose, which count for nobody.
    pub const fn hold_none(&'static self) -> Held {
        Held {
            budget: self,
            pages: 0,
            _charge: None,
        }
    }
}

/// Pages that count until this is dropped.
pub struct Held {
    budget: &'static Budget,
    pages: usize,
    /// To the user; `None` for who may lock all it likes.
    _charge: Option<Charge>,
}

impl Held {
    /// From now on so many count for the purpose.
    ///
    /// Errors: `beyond` for too many.
    pub fn count(&mut self, pages: usize, beyond: Error) -> Result<()> {
        let limit = mach::mem::stats().total as usize / self.budget.share;
        let sum = |held: usize| {
            let sum = (held - self.pages).checked_add(pages)?;
            (sum <= limit || pages <= self.pages).then_some(sum)
        };
        let held = self.budget.held.fetch_update(Relaxed, Relaxed, sum);
        held.map_err(|_| beyond)?;
        self.pages = pages;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.pages, Relaxed);
    }
}

fn charge(pages: u64, beyond: Error) -> Result<Option<Charge>> {
    let limit = cred::limit(Resource::LockedBytes);
    let (uid, is_free) =
        cred::credentials().with(|who| (who.user.real, who.has(Capability::IpcLock)));
    if is_free || limit == UNLIMITED {
        return Ok(None);
    }
    let limit = limit / PAGE_BYTES as u64;
    let charged = Account::of(uid)?.charge_many(Counted::PinnedPages, pages, limit);
    charged.map(Some).map_err(|_| beyond)
}
