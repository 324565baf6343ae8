//! What becomes of a thread's gauges when it makes a thread, runs a program or ends, and who hears
//! of it.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use base::VirtAddr;
use mach::mem::USER_END;
use sync::Result;
use task::{Thread, family};

use crate::attributes::AttrBits;
use crate::event::watch::{ON_CPU, Watch, at_thread, each_at};
use crate::event::{Event, Gauge, Target};
use crate::record::{Record, SampleContext, sideband};
use crate::sample;

/// Whether any event is about what this thread does here.
fn is_heard(thread: &Thread) -> bool {
    at_thread(thread).is_some_and(Watch::is_watched) || ON_CPU.get().is_watched()
}

/// Writes the record that `make` makes to all events that are on and hear of `what`.
fn tell(thread: &Thread, what: AttrBits, make: impl Fn(&Event) -> Result<Record>) {
    let moment = SampleContext::of(thread);
    let write = |gauge: &Arc<Gauge>, event: &Arc<Event>| {
        let hears = event.attributes.hears.intersects(what);
        if hears && event.is_about(moment.cpu) && gauge.is_on() {
            let record =
                make(event).and_then(|record| record.with_trailer(event.author(), &moment));
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
    tell(maker, AttrBits::TASK, |_| sideband::fork(own, its_maker));
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
    tell(thread, AttrBits::COMM, |_| sideband::name(thread, true));
    note_mappings(thread, VirtAddr(0)..USER_END);
}

/// The thread has got another name.
pub fn note_name(thread: &Thread) {
    if is_heard(thread) {
        tell(thread, AttrBits::COMM, |_| sideband::name(thread, false));
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
        tell(thread, AttrBits::MMAP | AttrBits::MMAP2, |event| {
            sideband::mapping(event.attributes.hears, thread, &area)
        });
    }
}

/// The thread ends.
pub fn note_exit(thread: &Thread) {
    if !is_heard(thread) {
        return;
    }
    sample::deliver(thread);
    let own = (thread.process.id(), thread.id());
    let parent = family::parent_of(thread.process.id());
    tell(thread, AttrBits::TASK, |_| {
        sideband::exit(own, (parent, parent))
    });
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
