//! Promised memory: how much all programs together could come to need.
//!
//! What counts is what would take memory if it were touched: private writable areas (stacks
//! and heaps among them; from the moment they are first writable), shared anonymous memory as
//! a whole, and each page of a file in memory. `MAP_NORESERVE` areas do not count, unless
//! there is a limit for the sum.
//!
//! Whoever promises says so before ([`Promise::grow`]), and may be refused; a [`Promise`] gives
//! back what it stands for when it is dropped. That of an address space is brought in line
//! with its areas whenever its lock is let go (`space`), so no path can forget to.
//!
//! Not here: the rules of the policies (`accounting`).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use accounting::{Limit, Policy};
use base::PAGE_BYTES;
use sync::{Error, Result};

/// Bytes that are promised now. Memory is the machine's, and the promise is about all of it.
static PROMISED: AtomicU64 = AtomicU64::new(0);

/// What the administrator allows (vm.overcommit_memory), for the whole machine.
static MODE: AtomicU64 = AtomicU64::new(0);
/// The share of memory (vm.overcommit_ratio), likewise.
static PERCENT: AtomicU64 = AtomicU64::new(50);
/// 0 where the limit is a percentage. Likewise (vm.overcommit_kbytes).
static KIBIBYTES: AtomicU64 = AtomicU64::new(0);

const LIMITED: u64 = 2;

/// The mode by Linux's number, 0 to 2.
pub fn mode() -> u64 {
    MODE.load(Relaxed)
}

/// Sets the mode.
pub fn set_mode(mode: u64) -> Result<()> {
    if mode > LIMITED {
        return Err(Error::Invalid);
    }
    MODE.store(mode, Relaxed);
    Ok(())
}

/// Whether the sum of promises is limited, and so nothing is left out of it.
pub fn is_limited() -> bool {
    mode() == LIMITED
}

/// The limit as it was set: percent and KiB, one of them 0.
pub fn limits() -> (u64, u64) {
    match limit() {
        Limit::Percent(percent) => (percent, 0),
        Limit::Kibibytes(kibibytes) => (0, kibibytes),
    }
}

/// Sets the limit of mode 2 as a percentage of memory.
pub fn set_percent(percent: u64) {
    PERCENT.store(percent, Relaxed);
    KIBIBYTES.store(0, Relaxed);
}

/// Sets it as a figure.
pub fn set_kibibytes(kibibytes: u64) {
    KIBIBYTES.store(kibibytes, Relaxed);
}

fn limit() -> Limit {
    match KIBIBYTES.load(Relaxed) {
        0 => Limit::Percent(PERCENT.load(Relaxed)),
        kibibytes => Limit::Kibibytes(kibibytes),
    }
}

fn total_bytes() -> u64 {
    mach::mem::total_frames() * PAGE_BYTES as u64
}

/// What is promised, in bytes.
pub fn promised_bytes() -> u64 {
    PROMISED.load(Relaxed)
}

/// What may be promised in mode 2, in bytes.
pub fn limit_bytes() -> u64 {
    limit().bytes(total_bytes())
}

fn policy(total: u64) -> Policy {
    match mode() {
        0 => Policy::Heuristic,
        1 => Policy::Always,
        _ => Policy::Limited(limit().bytes(total)),
    }
}

/// Promises `more` bytes, if the policy admits it.
pub fn promise(more: u64) -> Result<()> {
    let total = total_bytes();
    let policy = policy(total);
    let add = |promised| {
        let admitted = policy.admits(promised, more, total);
        admitted.then(|| promised.saturating_add(more))
    };
    PROMISED
        .fetch_update(Relaxed, Relaxed, add)
        .map(drop)
        .map_err(|_| Error::OutOfMemory)
}

/// Takes a promise of `bytes` back.
pub fn release(bytes: u64) {
    PROMISED.fetch_sub(bytes, Relaxed);
}

/// Bytes that are promised to somebody, until it is dropped.
#[derive(Debug, Default)]
pub struct Promise(u64);

impl Promise {
    /// Promises `more` bytes besides.
    pub fn grow(&mut self, more: u64) -> Result<()> {
        promise(more)?;
        self.0 += more;
        Ok(())
    }

    /// It turned out to be this much, which is no more than was promised.
    pub fn settle(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.0, "memory is promised before it is given");
        if bytes != self.0 {
            release(self.0.saturating_sub(bytes));
            self.0 = bytes;
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        release(self.0);
    }
}
