//! `UMEM_LOGGING=transaction`: what happened to an object before its memory was used again.
//!
//! A header knows one allocation and one release. The log outlives them: with `audit` on,
//! each allocation and release is a record in a ring of fixed size, the oldest is overwritten,
//! and the overwritten ones are counted. The ring is mapped by the first record, so nothing here
//! allocates; without memory for it every record is counted as lost.
//!
//! Records are copied out below the lock and printed without it: naming a frame takes the dynamic
//! linker's lock, whose holder may be waiting for memory.

use core::ptr::NonNull;

use super::STATE;
use super::stack::Stack;
use crate::report::Line;
use crate::{settings, sys};

/// Records of an object that a report shows, at most.
const SHOWN: usize = 8;

/// What happened to an object.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Event {
    Allocated,
    Freed,
}

/// One allocation or release. All zeros is valid.
#[derive(Clone, Copy)]
struct Record {
    address: usize,
    /// Bytes of the objects of its cache.
    cache_bytes: usize,
    /// Of the monotonic clock.
    nanoseconds: u64,
    event: Event,
    stack: Stack,
}

impl Record {
    fn print(&self, now: u64) {
        let what = match self.event {
            Event::Allocated => "allocated ",
            Event::Freed => "freed ",
        };
        let ago = now.saturating_sub(self.nanoseconds);
        Line::new()
            .text("  ")
            .text(what)
            .number(ago as usize, 10)
            .text(" ns ago, cache of ")
            .number(self.cache_bytes, 10)
            .text(" bytes\n")
            .write();
        self.stack.print("by");
    }
}

/// The ring.
pub struct Log {
    ring: &'static mut [Record],
    /// Records so far, the lost ones too.
    written: usize,
}

impl Log {
    /// A log without a ring.
    pub const fn new() -> Self {
        Self {
            ring: &mut [],
            written: 0,
        }
    }

    /// Maps the ring; without memory there is none.
    fn map(&mut self, bytes: usize) {
        let places = bytes / size_of::<Record>();
        if let Some(start) = sys::map(bytes) {
            // SAFETY: the mapping is new, stays, has room for that many, and zeros are valid.
            self.ring = unsafe { core::slice::from_raw_parts_mut(start.cast().as_ptr(), places) };
        }
    }

    fn push(&mut self, record: Record) {
        if let Some(place) = self.written.checked_rem(self.ring.len()) {
            self.ring[place] = record;
        }
        self.written += 1;
    }

    /// Records that were overwritten or never had a place.
    fn lost(&self) -> usize {
        self.written.saturating_sub(self.ring.len())
    }

    /// The records of an object, the newest first.
    fn of(&self, address: usize) -> impl Iterator<Item = Record> {
        let newest_first = (self.lost()..self.written).rev();
        let records = newest_first.map(|number| self.ring[number % self.ring.len()]);
        records.filter(move |record| record.address == address)
    }
}

fn is_on() -> bool {
    settings::debug().frames > 0 && settings::transaction_log() > 0
}

/// Notes what happened to `memory`, from a cache of objects of `cache_bytes`.
pub fn note(event: Event, memory: NonNull<u8>, cache_bytes: usize, by: Stack) {
    if !is_on() {
        return;
    }
    let record = Record {
        address: memory.addr().get(),
        cache_bytes,
        nanoseconds: sys::nanoseconds(),
        event,
        stack: by,
    };
    let log = &mut STATE.lock().log;
    if log.written == 0 {
        log.map(settings::transaction_log());
    }
    log.push(record);
}

/// Writes the last records of an object to standard error. The debug lock is not held.
pub fn print(address: usize) {
    if !is_on() {
        return;
    }
    let mut shown = [None; SHOWN];
    let lost = {
        let log = &STATE.lock().log;
        let places = shown.iter_mut().zip(log.of(address));
        places.for_each(|(place, record)| *place = Some(record));
        log.lost()
    };
    Line::new()
        .text("  transaction log, the newest first (")
        .number(lost, 10)
        .text(" older records of all objects are lost):\n")
        .write();
    let now = sys::nanoseconds();
    let records = shown.iter().flatten();
    records.for_each(|record| record.print(now));
}
