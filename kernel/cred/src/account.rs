//! What each user makes the kernel keep, over all processes (Linux's `ucounts`).
//!
//! A limit per process is none: a program starts more processes. So what has a limit per user
//! is counted here, by user number; whoever adds one holds a [`Charge`], whose drop
//! takes it off again. An account lives as long as something is charged to it.
//!
//! Lock order: the table's is taken last and alone.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};

use mach::mem::fallible;
use mach::sync::Spin;
use sync::Result;

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Signals that wait with their information, and POSIX timers (RLIMIT_SIGPENDING).
    Signals,
    /// inotify descriptors (fs.inotify.max_user_instances).
    Notifiers,
    /// Files that they watch (fs.inotify.max_user_watches).
    Watches,
    /// Pages that its pipes may fill (fs.pipe-user-pages-soft).
    PipePages,
    /// Instructions of its filters over system calls (seccomp(2)).
    FilterInstructions,
    /// Gauges of its performance events (perf_event_open(2)).
    Gauges,
    /// Pages of their rings (kernel.perf_event_mlock_kb).
    RingPages,
    /// Bytes that its message queues may hold (RLIMIT_MSGQUEUE).
    MessageQueueBytes,
    /// Pages that are pinned for its AF_XDP sockets (RLIMIT_MEMLOCK).
    PinnedPages,
    /// Filters over links (`docs/rings.md`).
    LinkFilters,
}

const KINDS: usize = 10;

/// The user has as many as may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitReached;

/// The counts of one user.
pub struct Account {
    uid: u32,
    counts: [AtomicU64; KINDS],
}

/// Of the machine: a user's processes need have nothing in common but the user.
static ACCOUNTS: Spin<BTreeMap<u32, Weak<Account>>> = Spin::new(BTreeMap::new());

impl Account {
    /// That of the user with this number.
    pub fn of(uid: u32) -> Result<Arc<Self>> {
        let mut accounts = ACCOUNTS.lock();
        if let Some(account) = accounts.get(&uid).and_then(Weak::upgrade) {
            return Ok(account);
        }
        // Not `arc`: what that drops on failure would take the lock again.
        fallible::room_for_arc::<Self>()?;
        let account = Arc::new(Self {
            uid,
            counts: [const { AtomicU64::new(0) }; KINDS],
        });
        accounts.insert(uid, Arc::downgrade(&account));
        Ok(account)
    }

    /// tidy: there is a count for each kind.
    fn of_kind(&self, kind: Counted) -> &AtomicU64 {
        &self.counts[kind as usize]
    }

    /// How many are charged.
    pub fn count(&self, kind: Counted) -> u64 {
        self.of_kind(kind).load(Ordering::Relaxed)
    }

    /// Adds one, if there are fewer than `limit`.
    pub fn charge(
        self: &Arc<Self>,
        kind: Counted,
        limit: u64,
    ) -> core::result::Result<Charge, LimitReached> {
        self.charge_many(kind, 1, limit)
    }

    /// Adds `amount`, if there are no more than `limit` then.
    pub fn charge_many(
        self: &Arc<Self>,
        kind: Counted,
        amount: u64,
        limit: u64,
    ) -> core::result::Result<Charge, LimitReached> {
        let count = self.of_kind(kind);
        let more = |now: u64| now.checked_add(amount).filter(|sum| *sum <= limit);
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| LimitReached)?;
        Ok(Charge {
            account: self.clone(),
            kind,
            amount,
        })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut accounts = ACCOUNTS.lock();
        // Another may have been made meanwhile.
        if accounts
            .get(&self.uid)
            .is_some_and(|known| known.strong_count() == 0)
        {
            accounts.remove(&self.uid);
        }
    }
}

/// What is counted until this is dropped.
pub struct Charge {
    account: Arc<Account>,
    kind: Counted,
    amount: u64,
}

impl Charge {
    /// How much is counted.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Counts `more`, if there are no more than `limit` then.
    pub fn grow(&mut self, more: u64, limit: u64) -> core::result::Result<(), LimitReached> {
        if more > 0 {
            let mut added = self.account.charge_many(self.kind, more, limit)?;
            self.amount += core::mem::take(&mut added.amount);
        }
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let count = self.account.of_kind(self.kind);
        count.fetch_sub(self.amount, Ordering::Relaxed);
    }
}
