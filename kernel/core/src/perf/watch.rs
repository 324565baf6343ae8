//! A thread's gauges, and what becomes of them when it makes a thread, runs a program or ends.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mach::mem::fallible::TryPush;
use mach::sync::Spin;

use super::GAUGES_MAX;
use super::event::{Event, Target};
use super::gauge::Gauge;
use crate::error::{Error, Result};
use crate::task::Thread;

/// The gauges at a thread.
#[derive(Default)]
pub struct Watch {
    /// Whether there are any.
    is_watched: AtomicBool,
    gauges: Spin<Vec<Arc<Gauge>>>,
}

impl Watch {
    /// Whether any event is about this thread.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Relaxed)
    }

    pub(super) fn hang(&self, gauge: Arc<Gauge>) -> Result<()> {
        let mut gauges = self.gauges.lock();
        if gauges.len() >= GAUGES_MAX {
            return Err(Error::TooManyFiles);
        }
        gauges.try_push(gauge)?;
        self.is_watched.store(true, Relaxed);
        Ok(())
    }

    pub(super) fn take_down(&self, gauge: &Arc<Gauge>) {
        let mut gauges = self.gauges.lock();
        if let Some(at) = gauges.iter().position(|known| Arc::ptr_eq(known, gauge)) {
            drop(gauges.remove(at));
        }
        self.is_watched.store(!gauges.is_empty(), Relaxed);
    }

    /// The gauge at this place of the list.
    fn at(&self, index: usize) -> Option<Arc<Gauge>> {
        self.gauges.lock().get(index).cloned()
    }

    /// Calls `act` with the event of each gauge, without a lock: the event may end with it.
    pub(super) fn each(&self, mut act: impl FnMut(&Arc<Event>)) {
        let mut index = 0;
        while let Some(gauge) = self.at(index) {
            if let Some(event) = gauge.event.upgrade() {
                act(&event);
            }
            index += 1;
        }
    }
}

/// `new` is about to run, made by `maker`: it gets gauges of the events that are inherited.
///
/// Errors: `TooManyFiles`, `OutOfMemory`; then it has some of them.
pub fn note_thread(maker: &Thread, new: &Arc<Thread>) -> Result<()> {
    if !maker.perf.is_watched() {
        return Ok(());
    }
    let mut outcome = Ok(());
    maker.perf.each(|event| {
        if event.attributes.is_inherited && outcome.is_ok() {
            outcome = event.hang(&Target::Thread(new.clone()));
        }
    });
    outcome
}

/// The thread runs another program now.
pub fn note_exec(thread: &Thread) {
    if thread.perf.is_watched() {
        thread.perf.each(|event| {
            if event.attributes.starts_at_exec {
                event.switch(true);
            }
        });
    }
}

/// The thread ends.
pub fn note_exit(thread: &Thread) {
    while let Some(gauge) = thread.perf.at(0) {
        thread.perf.take_down(&gauge);
        if let Some(event) = gauge.event.upgrade() {
            event.bury(&gauge);
        }
    }
}
