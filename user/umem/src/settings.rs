//! What was asked for: written once, before the first allocation, by `options`.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

pub static PERTHREAD_CACHE: AtomicUsize = AtomicUsize::new(1 << 20);
pub static HAS_MAGAZINES: AtomicBool = AtomicBool::new(true);
pub static IS_ALONE: AtomicBool = AtomicBool::new(false);
pub static MAX_CONTENTION: AtomicU32 = AtomicU32::new(2);
pub static REAP_MS: AtomicUsize = AtomicUsize::new(500);
pub static FIT: AtomicU8 = AtomicU8::new(Fit::Instant as u8);
pub static IS_BREAK_USED: AtomicBool = AtomicBool::new(false);
pub static BREAK_LEAST: AtomicUsize = AtomicUsize::new(0);
pub static HAS_HUGE_PAGES: AtomicBool = AtomicBool::new(false);

pub static FRAMES: AtomicUsize = AtomicUsize::new(0);
pub static CONTENTS: AtomicUsize = AtomicUsize::new(0);
pub static GUARDS: AtomicBool = AtomicBool::new(false);
pub static TRANSACTION_LOG: AtomicUsize = AtomicUsize::new(0);

/// What `UMEM_DEBUG` asks for.
#[derive(Clone, Copy)]
pub struct Debug {
    /// Frames that are noted of each stack; 0 without `audit`.
    pub frames: usize,
    /// Bytes that are filled and compared; 0 without `contents`.
    pub contents_bytes: usize,
    /// Whether red zones and freed memory are looked at.
    pub guards: bool,
}

impl Debug {
    /// Whether anything is asked for.
    pub fn is_on(self) -> bool {
        self.frames > 0 || self.contents_bytes > 0 || self.guards
    }
}

/// What `UMEM_DEBUG` asks for.
pub fn debug() -> Debug {
    Debug {
        frames: FRAMES.load(Relaxed),
        contents_bytes: CONTENTS.load(Relaxed),
        guards: GUARDS.load(Relaxed),
    }
}

/// Bytes that a thread may keep, 0 for none.
pub fn perthread_cache() -> usize {
    PERTHREAD_CACHE.load(Relaxed)
}

/// Whether free objects are kept anywhere but in their slabs.
pub fn has_magazines() -> bool {
    HAS_MAGAZINES.load(Relaxed)
}

/// Whether the program says that one of its threads runs at a time.
pub fn is_alone() -> bool {
    IS_ALONE.load(Relaxed)
}

/// Times in an interval that threads may have to wait for a depot before it changes.
pub fn max_contention() -> u32 {
    MAX_CONTENTION.load(Relaxed)
}

/// Milliseconds of the interval after which idle memory is returned.
pub fn reap_ms() -> u64 {
    REAP_MS.load(Relaxed) as u64
}

/// Where spans are taken from segments.
pub fn fit() -> Fit {
    Fit::from_number(FIT.load(Relaxed))
}

/// Whether segments come from the program's break.
pub fn is_break_used() -> bool {
    IS_BREAK_USED.load(Relaxed)
}

/// Bytes by which the break is moved, at least.
pub fn break_least() -> usize {
    BREAK_LEAST.load(Relaxed)
}

/// Whether segments from the break ask for large pages.
pub fn has_huge_pages() -> bool {
    HAS_HUGE_PAGES.load(Relaxed)
}

/// Bytes of the transaction log, 0 for none.
pub fn transaction_log() -> usize {
    TRANSACTION_LOG.load(Relaxed)
}

/// The policies of vmem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fit {
    /// A run of a list that only has long enough ones.
    Instant,
    /// The shortest run.
    Best,
    /// The run with the lowest address.
    First,
    /// The first run behind the span that was taken last, or the first of all.
    Next,
}

impl Fit {
    /// Their names.
    pub const NAMES: [(&str, Self); 4] = [
        ("instant", Self::Instant),
        ("best", Self::Best),
        ("first", Self::First),
        ("next", Self::Next),
    ];

    /// The policy that has this number.
    pub fn from_number(number: u8) -> Self {
        let mut all = Self::NAMES.iter().map(|&(_, fit)| fit);
        all.find(|&fit| fit as u8 == number)
            .unwrap_or(Self::Instant)
    }
}
