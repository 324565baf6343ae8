//! The rings that a program has, by their numbers.

use std::cell::Cell;
use std::ffi::c_int;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use posix::uring::Registered;
use uring::Geometry;

use super::entering::{Loss, OwnRing};
use super::{abi, polling};
use crate::config;
use crate::numbers::{self, Whose};
use crate::ring_hooks::{self, Hooks};

/// Where a ring's memory lies in the program, and how much of it there is.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    pub offset: i64,
    pub start: *mut u8,
    pub bytes: usize,
}

// SAFETY: an address, which whoever uses it has to know the meaning of.
unsafe impl Send for Mapped {}

/// What is known of a ring that is the kernel's.
#[derive(Default)]
pub struct Known {
    pub flags: u32,
    pub geometry: Option<Geometry>,
    pub maps: Vec<Mapped>,
    /// What its program has registered there.
    pub registered: Registered,
    pub eventfd: Option<c_int>,
    /// Somebody waits for its number.
    pub is_polled: bool,
}

/// Whose a ring is.
pub enum Owner {
    Kernel(Box<Known>),
    Ours(Arc<OwnRing>),
    /// That of a process from which this one was forked.
    Parent,
}

struct Entry {
    number: c_int,
    owner: Owner,
}

static TABLE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
/// Rings that are ours.
static OURS: AtomicUsize = AtomicUsize::new(0);

fn lock() -> MutexGuard<'static, Vec<Entry>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any ring is ours.
pub fn has_any() -> bool {
    OURS.load(Ordering::Acquire) != 0
}

/// What a number is, to who enters it.
pub enum Found {
    /// No ring of ours.
    Kernels,
    Ours(Arc<OwnRing>),
    Parents,
}

/// What it is.
pub fn find(number: c_int) -> Found {
    if numbers::seen(number) != Whose::Ring {
        return Found::Kernels;
    }
    let table = lock();
    match table.iter().find(|entry| entry.number == number) {
        Some(Entry {
            owner: Owner::Ours(ring),
            ..
        }) => Found::Ours(ring.clone()),
        Some(Entry {
            owner: Owner::Parent,
            ..
        }) => Found::Parents,
        _ => Found::Kernels,
    }
}

/// Does `act` with each ring of ours. It must not wait for a ring's lock.
pub fn for_each(mut act: impl FnMut(&OwnRing)) {
    for entry in lock().iter() {
        if let Owner::Ours(ring) = &entry.owner {
            act(ring);
        }
    }
}

/// Does `act` with what is known of a ring that is the kernel's.
pub fn with_known<R>(number: c_int, act: impl FnOnce(&mut Known) -> R) -> Option<R> {
    let mut table = lock();
    let entry = table.iter_mut().find(|entry| entry.number == number)?;
    match &mut entry.owner {
        Owner::Kernel(known) => Some(act(known)),
        _ => None,
    }
}

/// What rings hear of numbers.
fn hooks() -> Hooks {
    Hooks {
        close,
        note_closed,
        note_moved,
        note_polled: polling::note_polled,
        before_wait: polling::before_wait,
        has_any,
        stop,
        go_on,
        become_a_child,
    }
}

/// A ring of the kernel's is known from now on, if it was not.
pub fn know(number: c_int, flags: u32, geometry: Option<Geometry>) {
    ring_hooks::serve_by(hooks());
    let mut table = lock();
    if numbers::seen(number) == Whose::Ring && table.iter().any(|one| one.number == number) {
        return;
    }
    table.retain(|entry| entry.number != number);
    let known = Known {
        flags,
        geometry,
        ..Known::default()
    };
    table.push(Entry {
        number,
        owner: Owner::Kernel(Box::new(known)),
    });
    numbers::set(number, Whose::Ring);
}

/// The kernel has made a ring and said how.
///
/// # Safety
/// `at` is its `struct io_uring_params`.
pub unsafe fn note_setup(number: c_int, at: *const [u32; 30]) {
    if config::get().is_none() || !numbers::has(number) {
        return;
    }
    // SAFETY: as the caller says.
    let [sq_entries, cq_entries, flags, ..] = unsafe { at.read_unaligned() };
    let geometry = Geometry::check(sq_entries, Some(cq_entries), false);
    numbers::set(number, Whose::Kernel);
    know(number, flags, geometry.ok());
}

/// The program has mapped a ring.
pub fn note_mapping(number: c_int, offset: i64, start: *mut u8, bytes: usize) {
    let mapped = Mapped {
        offset,
        start,
        bytes,
    };
    with_known(number, |known| {
        known.maps.retain(|one| one.offset != offset);
        known.maps.push(mapped);
    });
}

/// It is ours from now on.
pub fn give(number: c_int, ring: &Arc<OwnRing>) {
    let mut table = lock();
    if let Some(entry) = table.iter_mut().find(|entry| entry.number == number) {
        entry.owner = Owner::Ours(ring.clone());
        OURS.fetch_add(1, Ordering::AcqRel);
    }
}

/// A ring's number is closed.
pub fn close(number: c_int) {
    numbers::set(number, Whose::Kernel);
    let mut table = lock();
    let Some(at) = table.iter().position(|entry| entry.number == number) else {
        return;
    };
    let entry = table.swap_remove(at);
    drop(table);
    if let Owner::Ours(ring) = entry.owner {
        OURS.fetch_sub(1, Ordering::AcqRel);
        ring.end();
    }
}

/// A number of ours is closed: requests of all rings hear of it. Whether anybody waits who has to be woken.
pub fn note_closed(number: c_int) -> bool {
    note_lost(number, Loss::Closed)
}

/// The same where its socket has become the kernel's.
pub fn note_moved(number: c_int) -> bool {
    note_lost(number, Loss::Moved)
}

fn note_lost(number: c_int, loss: Loss) -> bool {
    if !has_any() {
        return false;
    }
    let table = lock();
    let rings = table.iter().filter_map(|entry| match &entry.owner {
        Owner::Ours(ring) => Some(ring),
        _ => None,
    });
    // All of them are told.
    rings.fold(false, |is_awaited, ring| {
        ring.note_lost(number, loss) | is_awaited
    })
}

thread_local! {
    /// Held by who forks, so that the child finds the table whole.
    static FORKING: Cell<Option<MutexGuard<'static, Vec<Entry>>>> = const { Cell::new(None) };
}

/// The table stands still until [`go_on`].
pub fn stop() {
    FORKING.set(Some(lock()));
}

/// It does no longer.
pub fn go_on() {
    drop(FORKING.take());
}

/// In a child: rings of ours are the parent's.
pub fn become_a_child() {
    let Some(mut table) = FORKING.take() else {
        return;
    };
    for entry in table.iter_mut() {
        if let Owner::Ours(ring) = &entry.owner {
            // Whatever the parent's threads were doing with it, nobody does it here.
            mem::forget(ring.clone());
            entry.owner = Owner::Parent;
        }
    }
    OURS.store(0, Ordering::Release);
}

/// Says once that a ring is its parent's.
pub fn complain_of_parent() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!("libsietch: a ring of io_uring stays its parent's after a fork; the child needs one of its own.");
    });
}

/// Whether a ring of these flags can become ours.
pub fn may_be_ours(flags: u32) -> bool {
    flags & !abi::SETUP_KNOWN == 0
}
