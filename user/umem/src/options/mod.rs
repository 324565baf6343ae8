//! What `UMEM_OPTIONS`, `UMEM_DEBUG` and `UMEM_LOGGING` ask for.
//!
//! Unknown words are ignored, as libumem does. A value that makes no sense is reported on
//! standard error, and its word is ignored.

mod words;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::depots;
use crate::mark;
use crate::settings::{
    BREAK_LEAST, CONTENTS, FIT, FRAMES, Fit, GUARDS, HAS_HUGE_PAGES, HAS_MAGAZINES, IS_ALONE,
    IS_BREAK_USED, MAX_CONTENTION, PERTHREAD_CACHE, REAP_MS, TRANSACTION_LOG, debug, has_magazines,
};
use crate::sizes::{SizeError, Sizes};
use words::Word;

static IS_READ: AtomicBool = AtomicBool::new(false);

/// Frames of a stack and bytes of an allocation that are kept and filled by default.
const DEFAULT_FRAMES: usize = 15;
const DEFAULT_CONTENTS: usize = 256;
/// Bytes of the transaction log by default, and at most.
const DEFAULT_LOG: usize = 64 << 10;
const LARGEST_LOG: usize = 4 << 20;
/// The sizes of pages that the break may have.
const PAGES: [usize; 2] = [4 << 10, 2 << 20];

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
