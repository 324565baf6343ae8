//! Who brings dirty pages down when no program asks for it.
//!
//! One thread of the kernel's looks at all file systems every five seconds, and at once when much
//! is dirty: then all goes down, else what has been dirty for half a minute. Where more is dirty
//! than may be, who dirties pages brings some of its own down first, so that programs that write
//! come no faster than the disk goes, and others do not wait at all.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use base::{Duration, Instant, PAGE_BYTES};
use pagecache::{DirtyLimits, Pressure, Threshold};
use sync::{Mutex, Wait, WaitQueue};

use crate::cache::Backing;
use crate::memory;
use crate::write_back::write_back_some;

/// Pages that are written between two looks at how much is dirty.
const LOOK_PAGES: usize = 64;
/// Pages that a writer brings down at once where there is too much.
const OWN_PAGES: u64 = 1024;

/// A file system whose pages have to be brought down.
pub trait Flush: Send + Sync {
    /// Brings down what is dirty since before `before`, and what is needed to find it.
    fn flush(&self, before: Instant);
}

/// File systems that are mounted, or were and have dirty pages. The machine has one flusher.
static SYSTEMS: Mutex<Vec<Weak<dyn Flush>>> = Mutex::new(Vec::new());
/// Somebody wants the machine's flusher to look now.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// The machine's flusher waits here.
static WANTED: WaitQueue = WaitQueue::new();

/// Linux's `vm.dirty_*`: settings of the machine.
#[derive(Debug)]
pub struct Settings {
    /// Percent at which somebody writes back; counts unless the bytes are set.
    pub background_ratio: AtomicU64,
    /// The same in bytes; 0 for none.
    pub background_bytes: AtomicU64,
    /// Percent at which writers wait.
    pub ratio: AtomicU64,
    /// The same in bytes.
    pub bytes: AtomicU64,
    /// How long pages are dirty at most until they are due, in hundredths of a second.
    pub expire_centisecs: AtomicU64,
    /// How often somebody looks; 0 for never.
    pub writeback_centisecs: AtomicU64,
}

/// As they are.
pub static SETTINGS: Settings = Settings {
    background_ratio: AtomicU64::new(10),
    background_bytes: AtomicU64::new(0),
    ratio: AtomicU64::new(20),
    bytes: AtomicU64::new(0),
    expire_centisecs: AtomicU64::new(3000),
    writeback_centisecs: AtomicU64::new(500),
};

fn threshold(percent: &AtomicU64, bytes: &AtomicU64) -> Threshold {
    match bytes.load(Relaxed) {
        0 => Threshold::Percent(percent.load(Relaxed)),
        bytes => Threshold::Bytes(bytes),
    }
}

fn pressure() -> Pressure {
    let limits = DirtyLimits {
        background: threshold(&SETTINGS.background_ratio, &SETTINGS.background_bytes),
        most: threshold(&SETTINGS.ratio, &SETTINGS.bytes),
    };
    limits.pressure(
        memory::counts().dirty,
        memory::available(),
        PAGE_BYTES as u64,
    )
}

/// A file system from now on has pages that somebody must bring down.
///
/// Errors: `OutOfMemory`.
pub fn register(system: &Arc<dyn Flush>) -> sync::Result<()> {
    let mut systems = SYSTEMS.lock();
    systems.retain(|system| system.strong_count() != 0);
    systems
        .try_reserve(1)
        .map_err(|_| sync::Error::OutOfMemory)?;
    systems.push(Arc::downgrade(system));
    drop(systems);
    wake();
    Ok(())
}

/// So many pages were written to: what follows from that. Programs' memory is not touched.
pub(crate) fn throttle(of: &dyn Backing, pages: usize) {
    let unchecked: &AtomicUsize = &of.cache().unchecked;
    if unchecked.fetch_add(pages, Relaxed) + pages < LOOK_PAGES {
        return;
    }
    unchecked.store(0, Relaxed);
    memory::make_room(LOOK_PAGES as u64);
    match pressure() {
        Pressure::None => {}
        Pressure::Flush => wake(),
        Pressure::Wait => {
            wake();
            // Who has the file open hears of a failure.
            let _ = write_back_some(of, 0..u64::MAX, OWN_PAGES);
        }
    }
}

fn wake() {
    if !IS_WANTED.swap(true, SeqCst) {
        WANTED.wake_all();
    }
}

/// What the flusher's thread does.
pub fn run(_: usize) -> ! {
    sched::finish_switch();
    loop {
        let interval = match SETTINGS.writeback_centisecs.load(Relaxed) {
            // A machine without such file systems is not woken for nothing.
            centisecs if centisecs == 0 || SYSTEMS.lock().is_empty() => Instant::NEVER,
            centisecs => mach::time::now() + centisecs_of(centisecs),
        };
        let is_wanted = || IS_WANTED.swap(false, SeqCst).then_some(());
        // The interval is over as well.
        let _ = WANTED.wait(Wait::UNINTERRUPTIBLE.until(interval), is_wanted);
        let now = mach::time::now();
        let age = centisecs_of(SETTINGS.expire_centisecs.load(Relaxed));
        let before = match pressure() {
            Pressure::None => now - age,
            _ => now,
        };
        flush_all(before);
    }
}

fn centisecs_of(count: u64) -> Duration {
    const DAY: u64 = 24 * 3600 * 100;
    Duration::from_millis(count.min(DAY) * 10)
}

/// Brings down what is dirty since before `before` in all file systems, mounted or only used.
pub fn flush_all(before: Instant) {
    let count = {
        let mut systems = SYSTEMS.lock();
        systems.retain(|system| system.strong_count() != 0);
        systems.len()
    };
    // One by one, so that none is kept from going meanwhile; from the last on, so that none is left out where one goes.
    for index in (0..count).rev() {
        let next = SYSTEMS.lock().get(index).cloned();
        if let Some(system) = next.and_then(|system| system.upgrade()) {
            system.flush(before);
        }
    }
}
