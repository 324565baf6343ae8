//! The gauges at a thread.
//!
//! A CPU has such a list as well, of the gauges whose events want to hear what happens on it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mach::cpu::PerCpu;
use mach::mem::fallible::{self, TryPush};
use mach::sync::Spin;
use sync::{Error, Result};
use task::Thread;

use super::Event;
use super::gauge::Gauge;
use crate::limits::GAUGES_MAX;

/// The gauges of CPUs whose events want samples or news.
pub(crate) static ON_CPU: PerCpu<Watch> = PerCpu::new(Watch::default);

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

    pub(crate) fn take_down(&self, gauge: &Arc<Gauge>) {
        let mut gauges = self.gauges.lock();
        if let Some(at) = gauges.iter().position(|known| Arc::ptr_eq(known, gauge)) {
            drop(gauges.remove(at));
        }
        self.is_watched.store(!gauges.is_empty(), Relaxed);
    }

    /// The gauge at this place of the list.
    pub(crate) fn at(&self, index: usize) -> Option<Arc<Gauge>> {
        self.gauges.lock().get(index).cloned()
    }

    /// Calls `act` with each gauge and its event, without a lock: the event may end with it.
    pub(crate) fn each(&self, mut act: impl FnMut(&Arc<Gauge>, &Arc<Event>)) {
        let mut index = 0;
        while let Some(gauge) = self.at(index) {
            if let Some(event) = gauge.event.upgrade() {
                act(&gauge, &event);
            }
            index += 1;
        }
    }
}

/// The gauges at this thread, if it ever had any.
pub(crate) fn at_thread(thread: &Thread) -> Option<&Watch> {
    thread.watch.get()?.downcast_ref()
}

/// Puts a gauge at this thread.
pub(super) fn hang_at(thread: &Thread, gauge: Arc<Gauge>) -> Result<()> {
    if at_thread(thread).is_none() {
        let fresh: Arc<dyn Any + Send + Sync> = fallible::arc(Watch::default())?;
        // Another event may have been faster.
        let _ = thread.watch.set(fresh);
    }
    at_thread(thread).map_or(Err(Error::OutOfMemory), |watch| watch.hang(gauge))
}

/// Calls `act` with each gauge at the thread and its event.
pub(crate) fn each_at(thread: &Thread, act: impl FnMut(&Arc<Gauge>, &Arc<Event>)) {
    if let Some(watch) = at_thread(thread) {
        watch.each(act);
    }
}
