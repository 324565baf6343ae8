//! io_uring_enter(2), and the work that whoever enters does.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Instant;
use libc::{sigset_t, timespec};
use posix::uring::Ring;
use posix::{Errno, Open, Result, WatchSet};
use rt::RingMemory;

use super::abi::{ENTER_EXT_ARG, ENTER_GETEVENTS};
use super::hands::Hands;
use super::kernels::KernelRing;
use super::polling::Polled;
use super::syscalls::raw_enter;
use super::table::{self, Found};
use super::{keeping, taking};
use crate::state::{self, Held};

/// A ring of ours.
pub struct OwnRing {
    pub number: c_int,
    inside: Mutex<Inside>,
    /// The sockets that its requests wait for.
    pub set: Arc<WatchSet>,
    /// What has become of numbers of ours since anybody worked.
    lost: Mutex<Vec<(c_int, Loss)>>,
    /// Counts all that who waits has to look at.
    pub changes: AtomicUsize,
    pub waiters: AtomicUsize,
    /// Counts those who entered.
    pub visits: AtomicUsize,
    pub is_over: AtomicBool,
    /// What can be read when the kernel has completed something.
    pub wait_for: AtomicI32,
    /// What is written to when something has completed; -1 for nothing.
    pub eventfd: AtomicI32,
    pub keeper: keeping::Keeper,
}

/// What its lock guards.
pub struct Inside {
    pub ring: Ring<RingMemory>,
    pub kernel: KernelRing,
    pub watched: Vec<Option<Arc<Open>>>,
    pub polled: Option<Polled>,
}

/// How a number of ours is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// It is closed.
    Closed,
    /// Its socket has become the kernel's.
    Moved,
}

/// How a wait ends.
pub struct Patience {
    pub least: u32,
    pub until: Option<Instant>,
    pub mask: *const sigset_t,
}

impl OwnRing {
    /// One that nobody knows yet.
    pub fn new(number: c_int, inside: Inside, eventfd: c_int) -> Arc<Self> {
        Arc::new(Self {
            number,
            inside: Mutex::new(inside),
            set: WatchSet::new(),
            lost: Mutex::default(),
            changes: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            visits: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            wait_for: AtomicI32::new(number),
            eventfd: AtomicI32::new(eventfd),
            keeper: keeping::Keeper::default(),
        })
    }

    /// Its lock, with all that was lost taken note of.
    pub fn lock(&self) -> MutexGuard<'_, Inside> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = {
            let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *lost)
        };
        for (number, loss) in lost {
            inside.with(&self.set, |ring, hands| match loss {
                Loss::Closed => ring.note_closed(hands, number),
                Loss::Moved => ring.note_moved(hands, number),
            });
        }
        inside
    }

    /// The same, unless somebody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Inside>> {
        self.inside.try_lock().ok()
    }

    /// A number is ours no longer; whether anybody waits.
    pub fn note_lost(&self, number: c_int, loss: Loss) -> bool {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.push((number, loss));
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.waiters.load(Ordering::Acquire) != 0
    }

    /// Does what can be done, and tells who waits for that.
    pub fn work(&self, inside: &mut Inside) {
        let before = inside.ring.posted();
        inside.work(&self.set);
        let are_new = inside.ring.posted() != before;
        inside.mark(are_new);
        // The kernel may have completed something while the mark was made.
        if are_new || inside.polled.is_some() && inside.has_completed() {
            self.announce();
        }
    }

    /// Something has completed.
    fn announce(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let eventfd = self.eventfd.load(Ordering::Acquire);
        if eventfd >= 0 {
            let one = 1_u64;
            // SAFETY: eight bytes of `one` are read.
            unsafe { libc::syscall(libc::SYS_write, eventfd, &raw const one, size_of::<u64>()) };
        }
        self.wake();
    }

    /// Wakes whoever waits in it.
    pub fn wake(&self) {
        if self.waiters.load(Ordering::Acquire) != 0
            && let Ok(mut held) = Held::wait()
        {
            held.parts().1.ring();
        }
    }

    /// Submits and waits.
    ///
    /// Errors: `AGAIN`, and those of a wait.
    pub fn enter(self: &Arc<Self>, submit: c_uint, patience: Option<Patience>) -> Result<c_uint> {
        self.visits.fetch_add(1, Ordering::AcqRel);
        let mut submitted = 0;
        if submit != 0 {
            let mut inside = self.lock();
            submitted = inside.submit(submit)?;
            self.work(&mut inside);
            drop(inside);
            if self.waiters.load(Ordering::Acquire) != 0 {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.wake();
            }
        }
        if let Some(patience) = patience
            && submitted == submit
        {
            let waited = self.wait(&patience);
            if submitted == 0 {
                waited?;
            }
        } else {
            Inside::flush(&self.set);
        }
        self.keeper.note_left(self);
        Ok(submitted)
    }

    /// Its number is closed.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
        let mut inside = self.lock();
        // There may be none.
        inside
            .with(&self.set, |ring, hands| ring.registered.clear_files(hands))
            .ok();
        Self::end_polling(&mut inside);
        drop(inside);
        self.wake();
        self.keeper.wake();
    }
}

impl Inside {
    /// Does `act` with the ring and what it works by.
    pub fn with<R>(
        &mut self,
        set: &Arc<WatchSet>,
        act: impl FnOnce(&mut Ring<RingMemory>, &mut Hands<'_>) -> R,
    ) -> R {
        let mut hands = Hands {
            set,
            kernel: &mut self.kernel,
            watched: &mut self.watched,
        };
        act(&mut self.ring, &mut hands)
    }

    fn submit(&mut self, count: c_uint) -> Result<c_uint> {
        // Sends of one submission leave together.
        if count > 1
            && let Ok(mut held) = Held::wait()
        {
            held.host().expect_answers(count as usize + 1);
        }
        self.ring.submit(count)
    }

    /// Does what can be done now.
    fn work(&mut self, set: &Arc<WatchSet>) {
        loop {
            self.reap(set);
            let now = state::now();
            self.with(set, |ring, hands| ring.work(hands, now));
            // What the kernel does at once is there when it was submitted.
            if !self.kernel.submit() || !self.has_completed() {
                return;
            }
        }
    }

    fn reap(&mut self, set: &Arc<WatchSet>) {
        self.drain_bell();
        while self.has_completed()
            && let Some((name, result, flags)) = self.kernel.take()
        {
            if name == posix::uring::MARK {
                self.note_mark_taken();
            }
            self.with(set, |ring, hands| {
                ring.note_completed(hands, name, (result, flags));
            });
        }
    }

    /// What was sent leaves.
    pub fn flush(set: &WatchSet) {
        for place in crate::patience::places(set.places() | 1) {
            if let Ok(mut held) = Held::at(place) {
                held.host().flush();
            }
        }
    }
}

/// `io_uring_enter(2)`; an error is a number below zero.
///
/// # Safety
/// **Caller**.
pub unsafe fn enter(
    number: c_int,
    what: [c_uint; 3],
    argument: *const c_void,
    bytes: usize,
) -> c_int {
    let found = match table::find(number) {
        Found::Kernels => taking::take_if_used(number, what[0]),
        found => found,
    };
    match found {
        // SAFETY: **Caller**.
        Found::Kernels => unsafe { raw_enter(number, what, argument, bytes) },
        Found::Parents => {
            table::complain_of_parent();
            -libc::EOPNOTSUPP
        }
        // SAFETY: **Caller**.
        Found::Ours(ring) => unsafe { enter_ours(&ring, what, argument, bytes) },
    }
}

/// The same of a ring of ours.
///
/// # Safety
/// **Caller**.
pub unsafe fn enter_ours(
    ring: &Arc<OwnRing>,
    [submit, least, flags]: [c_uint; 3],
    argument: *const c_void,
    bytes: usize,
) -> c_int {
    if flags & !(ENTER_GETEVENTS | ENTER_EXT_ARG) != 0 {
        return -libc::EINVAL;
    }
    // SAFETY: **Caller**.
    let patience = match unsafe { patience_of(least, flags, argument, bytes) } {
        Ok(patience) => patience,
        Err(error) => return -error.number(),
    };
    match ring.enter(submit, patience) {
        Ok(submitted) => submitted as c_int,
        Err(error) => -error.number(),
    }
}

/// # Safety
/// **Caller**.
unsafe fn patience_of(
    least: c_uint,
    flags: c_uint,
    argument: *const c_void,
    bytes: usize,
) -> Result<Option<Patience>> {
    if flags & ENTER_GETEVENTS == 0 {
        return Ok(None);
    }
    let mut patience = Patience {
        least,
        until: None,
        mask: argument.cast(),
    };
    if flags & ENTER_EXT_ARG != 0 {
        if bytes != size_of::<[u64; 3]>() || argument.is_null() {
            return Err(Errno::INVALID);
        }
        // SAFETY: **Caller**: a `struct io_uring_getevents_arg`.
        let [mask, _, time] = unsafe { argument.cast::<[u64; 3]>().read_unaligned() };
        patience.mask = mask as usize as *const sigset_t;
        let time = time as usize as *const timespec;
        // SAFETY: **Caller**.
        patience.until = unsafe { time.as_ref() }.map(|span| after(state::now(), span));
    }
    Ok(Some(patience))
}

/// So much later.
pub fn after(now: Instant, span: &timespec) -> Instant {
    let nanos = (span.tv_sec as u64).saturating_mul(1_000_000_000);
    let nanos = nanos.saturating_add(span.tv_nsec as u64);
    Instant::from_nanos(now.as_nanos().saturating_add(nanos))
}
