//! read(2), and bringing pages in.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use mach::mem::fallible::TryGrow;
use mm::Page;
use mm::io::Sink;
use pagecache::Mark;
use sync::{Error, Result};

use crate::cache::{Backing, Keeps};
use crate::{PAGE, memory};

/// Reads from `offset` on; nothing at the end.
pub fn read_at(of: &dyn Backing, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
    let start = to.done();
    while to.remaining() > 0 {
        let at = offset.saturating_add((to.done() - start) as u64);
        match read_some(of, at, to) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if to.done() == start => return Err(error),
            Err(_) => break,
        }
    }
    Ok(to.done() - start)
}

/// Reads one stretch; false at the end of the file.
fn read_some(of: &dyn Backing, at: u64, to: &mut Sink<'_>) -> Result<bool> {
    let page = match (of.cache().page(at / PAGE), of.keeps()) {
        (Some(page), _) => page,
        (None, Keeps::Mapped) => return read_below(of, at, to),
        (None, Keeps::All) => {
            let wanted = ((at % PAGE) + to.remaining() as u64).div_ceil(PAGE);
            match bring_in(of, at / PAGE, wanted)? {
                Some(page) => page,
                None => return Ok(false),
            }
        }
    };
    let within = (at % PAGE) as usize;
    let left = of.size()?.saturating_sub(at);
    let len = (PAGE_BYTES - within).min(usize::try_from(left).unwrap_or(usize::MAX));
    Ok(to.put_page(&page, within, len)? != 0)
}

/// Reads what is below, up to the next page that is kept.
fn read_below(of: &dyn Backing, at: u64, to: &mut Sink<'_>) -> Result<bool> {
    let next = of.cache().pages.lock().next(at / PAGE);
    let until_next = next.map_or(u64::MAX, |next| (next * PAGE).saturating_sub(at));
    let count = to.remaining().min(of.piece_bytes());
    let count = count.min(usize::try_from(until_next).unwrap_or(usize::MAX));
    let mut bytes = mach::mem::fallible::zeroed(count)?;
    let read = of.fetch(at, &mut bytes)?;
    to.put(bytes.get(..read).unwrap_or(&[]))?;
    Ok(read != 0)
}

/// Brings a page in, and others ahead of who reads in order; `None` where the file has no such
/// page.
pub(crate) fn bring_in(of: &dyn Backing, index: u64, wanted: u64) -> Result<Option<Page>> {
    let cache = of.cache();
    let _writing = cache.writing.lock();
    match cache.page(index) {
        Some(page) => Ok(Some(page)),
        None => bring_in_alone(of, index, wanted),
    }
}

/// The same of a page that is not there, with the file's `writing` held.
pub(crate) fn bring_in_alone(of: &dyn Backing, index: u64, wanted: u64) -> Result<Option<Page>> {
    let cache = of.cache();
    let end = of.size()?.div_ceil(PAGE);
    if index >= end {
        return Ok(None);
    }
    let window = match of.keeps() {
        Keeps::All => cache.streams.lock().window(index, wanted, end),
        Keeps::Mapped => index..index + 1,
    };
    let next = cache.pages.lock().next(index).unwrap_or(u64::MAX);
    let pages = fresh_pages(window.end.min(next) - index)?;
    let (filled, has_room) = match of.fill(index, &pages) {
        // What was to be read ahead is of no use to who reads what is good.
        Err(_) if pages.len() > 1 => {
            let first = pages.get(..1).unwrap_or(&[]);
            of.fill(index, first).map(|has_room| (first, has_room))
        }
        result => result.map(|has_room| (pages.as_slice(), has_room)),
    }?;
    for (index, page) in (index..).zip(filled) {
        cache.add(index, page.clone());
    }
    if has_room {
        let mut pages = cache.pages.lock();
        (index..).zip(filled).for_each(|(index, _)| {
            pages.set(index, Mark::Settled);
        });
    }
    Ok(filled.first().cloned())
}

/// Pages to be filled: one, and as many of the others as there is memory for.
fn fresh_pages(count: u64) -> Result<Vec<Page>> {
    memory::make_room(count);
    let mut pages = Vec::new();
    pages.make_room(count as usize)?;
    pages.push(memory::fresh()?);
    for _ in 1..count {
        match Page::alloc() {
            Some(page) => pages.push(page),
            None => break,
        }
    }
    match pages.is_empty() {
        true => Err(Error::OutOfMemory),
        false => Ok(pages),
    }
}
