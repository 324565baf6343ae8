//! What the machine's tools see of the program's sockets: a table that the keeper writes (`inet::stack_table`).
//!
//! Nothing is written as sockets come and go. The keeper writes the table when somebody looks, which wakes it, and
//! otherwise once in a second in which it looks after frames anyway, so that a program that is stopped has a table that is
//! no older. Without the right to a table the program's sockets are seen by nobody.
//!
//! Lock order: the first state's lock, then the table's, then those of further ones.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::{Duration, Instant};
use posix::{Counter, Host, Link, Shown, StackTable};
use rt::{AnyIo, RingMemory, TableMemory};

use crate::config;
use crate::numbers::{self, Whose};

/// Rows, each a socket or a connection in TIME_WAIT; a child has fewer.
const ROWS: usize = 4096;
const ROWS_OF_CHILD: usize = 1024;
/// Unasked it is written no more often.
const APART: Duration = Duration::from_secs(1);

/// Locked under the state's lock only: a fork finds it free.
static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
/// The table's file.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

struct Seen {
    memory: TableMemory,
    rows: usize,
    written_at: Instant,
}

impl Seen {
    fn table(&self) -> StackTable<&RingMemory> {
        StackTable::new(self.memory.memory(), self.rows)
    }
}

fn lock() -> MutexGuard<'static, Option<Seen>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the table, for a program that has its link.
pub fn start(is_childs: bool) {
    let rows = if is_childs { ROWS_OF_CHILD } else { ROWS };
    let made = config::get().and_then(|config| {
        let bytes = StackTable::<()>::bytes(rows);
        TableMemory::open(&config.link, config.address.host(), rows as u32, bytes).ok()
    });
    let Some(memory) = made else { return };
    let number = memory.as_fd().as_raw_fd();
    numbers::set(number, Whose::Library);
    DESCRIPTOR.store(number, Relaxed);
    *lock() = Some(Seen {
        memory,
        rows,
        written_at: Instant::START,
    });
}

/// Nothing is seen from now on; in a child the parent's table stays the parent's. For who has the state's lock.
pub fn stop() {
    DESCRIPTOR.store(-1, Relaxed);
    let seen = lock().take();
    if let Some(seen) = seen {
        // It may be closed from now on.
        numbers::set(seen.memory.as_fd().as_raw_fd(), Whose::Kernel);
    }
}

/// What can be read while somebody looks; nobody's without a table.
pub fn descriptor() -> c_int {
    DESCRIPTOR.load(Relaxed)
}

/// Writes the table, with the first host locked, if somebody looks, or has not seen it written for long. Further hosts are shown
/// one after the other by `show_further`.
pub fn write<L: Link<Io = AnyIo>>(
    host: &mut Host<L>,
    now: Instant,
    show_further: impl FnOnce(&mut dyn FnMut(&mut Host<L>)),
) {
    let mut seen = lock();
    let Some(seen) = seen.as_mut() else { return };
    let question = seen.table().question();
    if question.is_none() && now.since(seen.written_at) < APART {
        return;
    }
    seen.written_at = now;
    let mut shown = Shown::default();
    let mut show = |host: &mut Host<L>| {
        let counters = frames(host);
        host.show(&mut shown, seen.rows, &counters);
    };
    show(host);
    show_further(&mut show);
    shown.write(&seen.table());
    if let Some(question) = question {
        seen.table().answer(question);
        seen.memory.tell_answered();
    }
}

/// What the queue or the card has counted.
fn frames(host: &mut Host<impl Link<Io = AnyIo>>) -> Vec<Counter> {
    let io = host.station().io();
    let driver = io.port_counters().map(|counters| counters.named());
    let driver = driver.into_iter().flatten().map(|one| ("card", one));
    let frames = io.counts().iter().map(|one| ("frames", one));
    frames.chain(driver).collect()
}
