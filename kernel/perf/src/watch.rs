//! A thread's gauges, and what becomes of them when it makes a thread, runs a program or ends.
//!
//! A CPU has such a list as well, of the gauges whose events want to hear what happens on it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::VirtAddr;
use mach::cpu::PerCpu;
use mach::mem::USER_END;
use mach::mem::fallible::{self, TryPush};
use mach::sync::Spin;
use sync::{Error, Result};
use task::{Thread, family};

use super::GAUGES_MAX;
use super::attributes::Hears;
use super::event::{Event, Target};
use super::gauge::Gauge;
use super::news;
use super::record::{Moment, Record};

/// The gauges of CPUs whose events want samples or news.
pub(super) static ON_CPU: PerCpu<Watch> = PerCpu::new(Watch::default);

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

    /// Calls `act` with each gauge and its event, without a lock: the event may end with it.
    pub(super) fn each(&self, mut act: impl FnMut(&Arc<Gauge>, &Arc<Event>)) {
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
pub(super) fn at_thread(thread: &Thread) -> Option<&Watch> {
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

/// Whether any event is about what this thread does here.
fn is_heard(thread: &Thread) -> bool {
    at_thread(thread).is_some_and(Watch::is_watched) || ON_CPU.get().is_watched()
}

/// Calls `act` with each gauge at the thread and its event.
pub(super) fn each_at(thread: &Thread, act: impl FnMut(&Arc<Gauge>, &Arc<Event>)) {
    if let Some(watch) = at_thread(thread) {
        watch.each(act);
    }
}

/// Writes the record that `make` makes to all events that are on and hear of `what`.
fn tell(thread: &Thread, what: Hears, make: impl Fn(&Event) -> Result<Record>) {
    let moment = Moment::of(thread);
    let write = |gauge: &Arc<Gauge>, event: &Arc<Event>| {
        let hears = event.attributes.hears.intersects(what);
        if hears && event.is_about(moment.cpu) && gauge.is_on() {
            let record = make(event).and_then(|record| record.with_trailer(event, &moment));
            event.emit(record, &moment);
        }
    };
    each_at(thread, write);
    ON_CPU.of(moment.cpu).each(write);
}

/// `new` is about to run, made by `maker`: it gets gauges of the events that are inherited.
///
/// Errors: `TooManyFiles`, `OutOfMemory`; then it has some of them.
pub fn note_thread(maker: &Thread, new: &Arc<Thread>) -> Result<()> {
    if !is_heard(maker) {
        return Ok(());
    }
    let mut outcome = Ok(());
    each_at(maker, |_, event| {
        if event.attributes.is_inherited && outcome.is_ok() {
            outcome = event.hang(&Target::Thread(new.clone()));
        }
    });
    let [own, its_maker] = [new, maker].map(|thread| (thread.process.id(), thread.id()));
    tell(maker, Hears::TASK, |_| news::fork(own, its_maker));
    outcome
}

/// The thread runs another program now.
pub fn note_exec(thread: &Thread) {
    if !is_heard(thread) {
        return;
    }
    if !thread.process.dumpable.load(Relaxed) {
        // Who asked for the old program may not look into one with other rights.
        forget(thread);
    }
    each_at(thread, |_, event| {
        if event.attributes.starts_at_exec {
            event.switch(true);
        }
    });
    tell(thread, Hears::COMM, |_| news::name(thread, true));
    note_mappings(thread, VirtAddr(0)..USER_END);
}

/// The thread has got another name.
pub fn note_name(thread: &Thread) {
    if is_heard(thread) {
        tell(thread, Hears::COMM, |_| news::name(thread, false));
    }
}

/// The running thread has mapped something at `range`.
pub fn note_mappings(thread: &Thread, range: Range<VirtAddr>) {
    if !is_heard(thread) {
        return;
    }
    let space = thread.process.space.get();
    let areas = space.areas_above(range.start);
    let inside = areas.take_while(|area| area.range.start < range.end);
    for area in inside.filter(|area| area.access.exec) {
        tell(thread, Hears::MMAP | Hears::MMAP2, |event| {
            news::mapping(event, thread, &area)
        });
    }
}

/// The thread ends.
pub fn note_exit(thread: &Thread) {
    if !is_heard(thread) {
        return;
    }
    super::deliver(thread);
    let own = (thread.process.id(), thread.id());
    let parent = family::parent_of(thread.process.id());
    tell(thread, Hears::TASK, |_| news::exit(own, (parent, parent)));
    forget(thread);
}

/// The thread is watched no more: its gauges leave what they have counted.
pub fn forget(thread: &Thread) {
    let Some(watch) = at_thread(thread) else {
        return;
    };
    while let Some(gauge) = watch.at(0) {
        watch.take_down(&gauge);
        if let Some(event) = gauge.event.upgrade() {
            event.bury(&gauge);
        }
    }
}
