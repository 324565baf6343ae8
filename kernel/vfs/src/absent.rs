//! What programs looked for in vain, for the summary after a program that failed.
//!
//! A program that was packed may lack a file that its host has; only the host can say, and the machine tells it which
//! paths led nowhere. What is noted, and what is forgotten because it was found in another folder, is `absences`'
//! affair.
//!
//! Whoever finds a file pays for one load. Where nothing is to be noted, as in machines with a root of their own, or once the
//! table has heard enough, a miss pays for another.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use absences::{Absences, bit_of};
use alloc::vec::Vec;
use mach::mem::fallible;
use mach::sync::Spin;
use sync::Result;

use crate::{PATH_BYTES_MAX, Path, context};

/// Whether the host wants to know.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// Of the machine, as the host packed one image for all its programs.
static TABLE: Spin<Absences> = Spin::new(Absences::new());
/// The bits of names that somebody is searching; written under the lock of `TABLE`.
static SEARCHED: AtomicU64 = AtomicU64::new(0);

/// Notes misses from now on.
pub fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// A path led somewhere.
#[inline]
pub(crate) fn note_find(path: &[u8]) {
    let searched = SEARCHED.load(Ordering::Relaxed);
    if searched != 0 && searched & bit_of(path) != 0 {
        change(|table, thread| table.find(thread, path));
    }
}

/// A path led nowhere.
#[inline]
pub(crate) fn note_miss(start: Option<&Path>, path: &[u8]) {
    if IS_WATCHED.load(Ordering::Relaxed) {
        note_watched_miss(start, path);
    }
}

#[cold]
fn note_watched_miss(start: Option<&Path>, path: &[u8]) {
    if path.first() == Some(&b'/') {
        return change(|table, thread| table.miss(thread, path));
    }
    // Without memory for its text the path is one of those that are not noted.
    if let Ok(path) = absolute(start, path) {
        change(|table, thread| table.miss(thread, &path));
    }
}

fn change(what: impl FnOnce(&mut Absences, u32)) {
    let thread = sched::current().id();
    let mut table = TABLE.lock();
    what(&mut table, thread);
    let is_over = table.is_over();
    let searched = if is_over { 0 } else { table.searched() };
    SEARCHED.store(searched, Ordering::Relaxed);
    if is_over {
        IS_WATCHED.store(false, Ordering::Relaxed);
    }
}

/// The text of a path that starts at a directory.
///
/// Errors: `OutOfMemory`.
fn absolute(start: Option<&Path>, path: &[u8]) -> Result<Vec<u8>> {
    let above = match start {
        Some(start) => start.name(),
        None => context().cwd().name(),
    };
    let mut text = fallible::vec(above.len() + 1 + path.len().min(PATH_BYTES_MAX))?;
    text.extend_from_slice(&above);
    if above.last() != Some(&b'/') {
        text.push(b'/');
    }
    text.extend_from_slice(path);
    Ok(text)
}

/// Prints the paths on the log, a line each; none where nobody watches.
pub fn report() {
    let table = TABLE.lock();
    for path in table.paths() {
        mach::klog!("absent path={}", path.escape_ascii());
    }
    if table.unnoted() != 0 {
        mach::klog!("absent others={}", table.unnoted());
    }
}
