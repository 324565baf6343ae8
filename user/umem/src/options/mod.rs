//! What `UMEM_OPTIONS`, `UMEM_DEBUG` and `UMEM_LOGGING` ask for.
//!
//! Unknown words are ignored, as libumem does. A value that makes no sense is reported on
//! standard error, and its word is ignored.

mod words;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::depots;
use crate::fit::Fit;
use crate::mark;
use crate::sizes::{SizeError, Sizes};
use words::Word;

static IS_READ: AtomicBool = AtomicBool::new(false);

static PERTHREAD_CACHE: AtomicUsize = AtomicUsize::new(1 << 20);
static HAS_MAGAZINES: AtomicBool = AtomicBool::new(true);
static IS_ALONE: AtomicBool = AtomicBool::new(false);
static MAX_CONTENTION: AtomicU32 = AtomicU32::new(2);
static REAP_MS: AtomicUsize = AtomicUsize::new(500);
static FIT: AtomicU8 = AtomicU8::new(Fit::Instant as u8);
static IS_BREAK_USED: AtomicBool = AtomicBool::new(false);
static BREAK_LEAST: AtomicUsize = AtomicUsize::new(0);
static HAS_HUGE_PAGES: AtomicBool = AtomicBool::new(false);

static FRAMES: AtomicUsize = AtomicUsize::new(0);
static CONTENTS: AtomicUsize = AtomicUsize::new(0);
static GUARDS: AtomicBool = AtomicBool::new(false);
static TRANSACTION_LOG: AtomicUsize = AtomicUsize::new(0);

/// Frames of a stack and bytes of an allocation that are kept and filled by default.
const DEFAULT_FRAMES: usize = 15;
const DEFAULT_CONTENTS: usize = 256;
/// Bytes of the transaction log by default, and at most.
const DEFAULT_LOG: usize = 64 << 10;
const LARGEST_LOG: usize = 4 << 20;
/// The sizes of pages that the break may have.
const PAGES: [usize; 2] = [4 << 10, 2 << 20];

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

/// Reads the environment on the first call.
pub fn read() {
    if IS_READ.load(Relaxed) || IS_READ.swap(true, Relaxed) {
        return;
    }
    mark::choose_key();
    read_sizes();
    words::for_each(c"UMEM_OPTIONS", |word| match word.name {
        b"perthread_cache" => set(&PERTHREAD_CACHE, word.size()),
        b"sbrk_minalloc" => set(&BREAK_LEAST, word.size()),
        _ => read_policy(&word),
    });
    words::for_each(c"UMEM_DEBUG", |word| read_debug(&word));
    words::for_each(c"UMEM_LOGGING", |word| {
        if word.name == b"transaction" {
            let size = word.size_or(DEFAULT_LOG);
            set(&TRANSACTION_LOG, size.map(|size| size.min(LARGEST_LOG)));
        }
    });
    if debug().is_on() || !has_magazines() {
        PERTHREAD_CACHE.store(0, Relaxed);
    }
}

fn set(place: &AtomicUsize, value: Option<usize>) {
    if let Some(value) = value {
        place.store(value, Relaxed);
    }
}

fn read_policy(word: &Word<'_>) {
    match word.name {
        b"nomagazines" => HAS_MAGAZINES.store(false, Relaxed),
        b"reap_interval" => set(
            &REAP_MS,
            word.size()
                .map(|seconds| seconds.saturating_mul(1000).max(1)),
        ),
        b"concurrency" => match word.size() {
            Some(0) => word.report(": at least one thread runs, ignored"),
            Some(threads) => IS_ALONE.store(threads == 1, Relaxed),
            None => {}
        },
        b"max_contention" => {
            if let Some(times) = word.size() {
                MAX_CONTENTION.store(times.try_into().unwrap_or(u32::MAX), Relaxed);
            }
        }
        b"allocator" => {
            if let Some(fit) = word.choice(&Fit::NAMES) {
                FIT.store(fit as u8, Relaxed);
            }
        }
        b"backend" => {
            if let Some(is_break) = word.choice(&[("sbrk", true), ("mmap", false)]) {
                IS_BREAK_USED.store(is_break, Relaxed);
            }
        }
        b"sbrk_pagesize" => match word.size() {
            Some(bytes) if PAGES.contains(&bytes) => {
                HAS_HUGE_PAGES.store(bytes == PAGES[1], Relaxed);
            }
            Some(_) => word.report(": no such page size, ignored"),
            None => {}
        },
        _ => {}
    }
}

fn read_debug(word: &Word<'_>) {
    if word.name == b"default" || word.name == b"guards" {
        GUARDS.store(true, Relaxed);
    }
    match word.name {
        b"default" => {
            FRAMES.store(DEFAULT_FRAMES, Relaxed);
            CONTENTS.store(DEFAULT_CONTENTS, Relaxed);
        }
        b"audit" => set(&FRAMES, word.size_or(DEFAULT_FRAMES)),
        b"contents" => set(&CONTENTS, word.size_or(DEFAULT_CONTENTS)),
        _ => {}
    }
}

/// Reads which sizes there are, in the order of the words.
fn read_sizes() {
    let (mut sizes, mut is_changed) = (Sizes::new(), false);
    words::for_each(c"UMEM_OPTIONS", |word| {
        is_changed |= match word.name {
            b"size_clear" => {
                sizes.clear();
                true
            }
            b"size_add" => word.size().is_some_and(|size| add(&mut sizes, size, &word)),
            b"size_remove" => word
                .size()
                .is_some_and(|size| accept(sizes.remove(size), &word).is_some()),
            _ => false,
        };
    });
    if is_changed {
        sizes.install(depots::set_up);
    }
}

fn add(sizes: &mut Sizes, size: usize, word: &Word<'_>) -> bool {
    let Some(limit) = accept(sizes.add(size), word) else {
        return false;
    };
    if limit != size {
        word.report_number(": rounded up to ", limit);
    }
    true
}

fn accept<T>(result: Result<T, SizeError>, word: &Word<'_>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    word.report(match error {
        SizeError::OutOfRange => ": sizes are 1 to 131072, ignored",
        SizeError::Exists => ": there is such a cache, ignored",
        SizeError::Missing => ": there is no such cache, ignored",
        SizeError::Largest => ": the largest cache stays, ignored",
        SizeError::TooMany => ": too many sizes, ignored",
    });
    None
}
