//! The signal state of a thread and of a process.
//!
//! A signal waits either with a thread (tkill, faults) or with the process; in the
//! second case any thread that does not block it may take it. `Flags::SIGNAL` of a
//! thread is set whenever it may have something to take: a sender first queues the
//! signal, then looks at the mask; the thread first changes its mask, then looks at the
//! queues ([`refresh`]). So one of the two sees the other.
//!
//! Lock order: the list of threads, then the queues of pending signals; never two queues.

use core::sync::atomic::{AtomicU64, Ordering};

use mach::sync::Spin;
use sched::Flags;
use sync::poll::Pollee;
use sync::{Slot, WaitQueue};

use super::action::ActionTable;
use super::pending::Pending;
use super::{Info, Origin, Signal, SignalSet};
use crate::processes::{Process, Thread};

/// The stack on which handlers with `SA_ONSTACK` run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AltStack {
    /// Its lowest address.
    pub base: u64,
    /// Its length in bytes; 0 if there is none.
    pub len: u64,
    /// It is forgotten when a handler enters it (`SS_AUTODISARM`).
    pub auto_disarm: bool,
}

impl AltStack {
    /// Whether `stack_pointer` lies on it.
    pub fn holds(&self, stack_pointer: u64) -> bool {
        !self.auto_disarm && stack_pointer.wrapping_sub(self.base).wrapping_sub(1) < self.len
    }
}

/// A thread's part.
#[derive(Default)]
pub struct ThreadSignals {
    mask: AtomicU64,
    awaited: AtomicU64,
    pub(super) pending: Spin<Pending>,
    mask_to_restore: Spin<Option<SignalSet>>,
    /// While it forks, what sweeps have sent its process since the fork began.
    pub(super) during_fork: Spin<Option<SignalSet>>,
    /// Where handlers may run.
    pub alt_stack: Spin<AltStack>,
}

impl ThreadSignals {
    /// For a new thread that blocks `mask`.
    pub fn new(mask: SignalSet) -> Self {
        Self {
            mask: AtomicU64::new(mask.0),
            ..Self::default()
        }
    }

    /// The blocked signals.
    pub fn mask(&self) -> SignalSet {
        SignalSet(self.mask.load(Ordering::SeqCst))
    }

    /// Whether the thread would take `signal` now.
    pub(super) fn takes(&self, signal: Signal) -> bool {
        self.taken().contains(signal)
    }

    /// The signals that the thread would take now.
    pub(super) fn taken(&self) -> SignalSet {
        !self.mask() | SignalSet(self.awaited.load(Ordering::SeqCst))
    }

    pub(super) fn set_awaited(&self, signals: SignalSet) {
        self.awaited.store(signals.0, Ordering::SeqCst);
    }

    /// The mask to go back to once a handler returns, if a call exchanged it.
    pub(super) fn take_mask_to_restore(&self) -> Option<SignalSet> {
        self.mask_to_restore.lock().take()
    }

    pub(super) fn keep_mask(&self, mask: SignalSet) {
        *self.mask_to_restore.lock() = Some(mask);
    }
}

/// A process' part.
pub struct ProcessSignals {
    pub(super) pending: Spin<Pending>,
    /// The reactions; shared by `CLONE_SIGHAND`.
    pub actions: Slot<ActionTable>,
    /// Told of every signal that starts to wait (signalfd).
    pub pollee: Pollee,
    pub(super) stopped_by: Spin<Option<Signal>>,
    pub(super) continued: WaitQueue,
}

impl ProcessSignals {
    /// Nothing pending, with these reactions.
    pub fn new(actions: alloc::sync::Arc<ActionTable>) -> Self {
        Self {
            pending: Spin::default(),
            actions: Slot::new(actions),
            pollee: Pollee::new(),
            stopped_by: Spin::new(None),
            continued: WaitQueue::new(),
        }
    }

    /// A timer expired: counts it with a signal of the same timer that still waits for
    /// the process; false if none does.
    pub(crate) fn add_overrun(&self, timer: u32) -> bool {
        self.pending.lock().add_overrun(timer)
    }

    /// Whether the process is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped_by().is_some()
    }

    /// The signal that stopped the process, if it is stopped.
    pub fn stopped_by(&self) -> Option<Signal> {
        *self.stopped_by.lock()
    }
}

/// Signals that wait for this thread or its process, blocked or not.
pub fn pending_set(thread: &Thread) -> SignalSet {
    let own = thread.signals.pending.lock().set();
    own | thread.process.signals.pending.lock().set()
}

/// Forgets what waits for a thread that has ended: it may stay on an idle CPU for long, and its
/// user pays for queued signals.
pub fn forget_thread(thread: &Thread) {
    thread.signals.pending.lock().discard(SignalSet::ALL);
}

/// The same of a process.
pub fn forget_process(process: &Process) {
    process.signals.pending.lock().discard(SignalSet::ALL);
}

/// Makes `Flags::SIGNAL` true to the queues and the mask.
pub fn refresh(thread: &Thread) {
    thread.clear_flags(Flags::SIGNAL);
    if !pending_set(thread)
        .without(thread.signals.mask())
        .is_empty()
    {
        thread.set_flags(Flags::SIGNAL);
    }
}

/// Blocks exactly `mask` (but never SIGKILL and SIGSTOP); gives back the former mask.
/// Only the thread itself may call it, or its tracer while it stands still.
pub fn set_mask(thread: &Thread, mask: SignalSet) -> SignalSet {
    let mask = mask.without(SignalSet::UNBLOCKABLE);
    let old = thread.signals.mask.swap(mask.0, Ordering::SeqCst);
    if old != mask.0 {
        refresh(thread);
    }
    SignalSet(old)
}

/// Blocks `mask` for the rest of this call (`ppoll`, `epoll_pwait`, `pselect6`,
/// `sigsuspend`): a handler that interrupts it still runs under `mask`, then the former
/// mask is back.
pub fn set_mask_for_call(thread: &Thread, mask: SignalSet) {
    let old = set_mask(thread, mask);
    thread.signals.keep_mask(old);
    thread.set_flags(Flags::MASK);
}

/// Takes one of the `wanted` signals that wait for this thread or its process
/// (sigtimedwait, signalfd), blocked or not.
pub fn take(thread: &Thread, wanted: SignalSet) -> Option<Info> {
    let own = thread.signals.pending.lock().take(wanted);
    let info = own.or_else(|| thread.process.signals.pending.lock().take(wanted));
    if let Some(info) = &info {
        refresh(thread);
        if let Origin::Timer { id, overrun, .. } = info.origin {
            thread.process.timers.note_delivery(id, overrun);
        }
    }
    info
}
