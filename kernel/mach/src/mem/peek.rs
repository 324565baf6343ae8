//! Reading a program's memory where nothing may fault or wait: for the profiler.
//!
//! The page table is walked by hand. Nobody is kept from changing it meanwhile, so each table
//! and each page is looked up in the frame table before it is read: what is read may be out of
//! date, or by then somebody else's, but it is RAM.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_BYTES, PAGE_SHIFT, PhysAddr};

use super::entry::{self, LARGE, PRESENT, USER};
use super::user::USER_END;
use super::{direct, ram, walk};

const WORD_BYTES: u64 = 8;
const INDEX_BITS: u32 = 9;
const ROOT_LEVEL: u32 = 3;

/// A part of a page, to its end.
pub(crate) struct Part {
    start: PhysAddr,
    words: usize,
}

impl Part {
    /// Its words as they are now.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = u64> + use<> {
        let first = direct::pointer(self.start).cast::<u64>();
        (0..self.words).map(move |index| {
            // SAFETY: **Direct**: the page is RAM, and the index stays in it. Its owners may
            // write to it now: the word is loaded once, whole, and any bits are a number.
            unsafe { AtomicU64::from_ptr(first.add(index)) }.load(Relaxed)
        })
    }
}

/// What the page table with this root maps from the aligned address `at` on, page by page, up to
/// the first that is not there.
pub(crate) fn peek(root: u64, mut at: u64) -> impl Iterator<Item = Part> {
    core::iter::from_fn(move || {
        let offset = at % PAGE_BYTES as u64;
        let start = PhysAddr(find_page(root, at)?.0 + offset);
        let bytes = PAGE_BYTES as u64 - offset;
        at += bytes;
        let words = (bytes / WORD_BYTES) as usize;
        Some(Part { start, words })
    })
}

/// The page of RAM at `at`, if a program may read it.
fn find_page(root: u64, at: u64) -> Option<PhysAddr> {
    if at >= USER_END.0 {
        return None;
    }
    let mut table = root;
    for level in (0..=ROOT_LEVEL).rev() {
        let shift = PAGE_SHIFT + INDEX_BITS * level;
        let index = (at >> shift) as usize % walk::ENTRIES;
        let slot = word_of(PhysAddr(table + index as u64 * WORD_BYTES))?;
        if slot & (PRESENT | USER) != PRESENT | USER {
            return None;
        }
        let address = entry::frame(slot) << PAGE_SHIFT;
        if level == 0 || slot & LARGE != 0 {
            let inside = (at & ((1 << shift) - 1)) & !(PAGE_BYTES as u64 - 1);
            return in_ram(PhysAddr((address & !((1 << shift) - 1)) + inside));
        }
        table = address;
    }
    None
}

fn in_ram(at: PhysAddr) -> Option<PhysAddr> {
    ram::table().info(at.0 >> PAGE_SHIFT).map(|_| at)
}

fn word_of(at: PhysAddr) -> Option<u64> {
    let word = direct::pointer(in_ram(at)?).cast::<u64>();
    // SAFETY: as in `Part::words`; page tables are atomic words.
    Some(unsafe { AtomicU64::from_ptr(word) }.load(Relaxed))
}
