//! What is known of a traced thread: why it stopped, with which registers, what comes next.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use mach::sync::Spin;
use mach::trap::UserRegs;
use sync::{Error, Result, WaitQueue};

use super::control::Order;
use super::stop::CallStop;
use crate::processes::{ExitStatus, Pid, Thread, Tid};
use crate::signal::{self, Info, Signal, SignalSet};

bitflags! {
    /// What a tracer wants to hear of; Linux's own bits (PTRACE_O_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Options: u32 {
        /// Stops at calls are marked by bit 7 of the signal.
        const MARK_CALLS = 1;
        /// Stop after fork(2), and trace the child.
        const FORK = 1 << Event::Fork as u32;
        /// Stop after vfork(2), and trace the child.
        const VFORK = 1 << Event::Vfork as u32;
        /// Stop after clone(2), and trace the child.
        const CLONE = 1 << Event::Clone as u32;
        /// Stop after execve(2), instead of a SIGTRAP.
        const EXEC = 1 << Event::Exec as u32;
        /// Stop when the child has left the memory that vfork(2) lent it.
        const VFORK_DONE = 1 << Event::VforkDone as u32;
        /// Stop before the end.
        const EXIT = 1 << Event::Exit as u32;
        /// Stop where a filter over calls wants the tracer's word.
        const SECCOMP = 1 << Event::Seccomp as u32;
        /// The tracee is killed when its tracer ends.
        const KILL_WITH_TRACER = 1 << 20;
    }
}

/// What a tracee stops for besides signals and calls; Linux's own numbers (PTRACE_EVENT_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It has forked.
    Fork = 1,
    /// It has made a child that borrows its memory.
    Vfork = 2,
    /// It has made a thread, or a child of another kind.
    Clone = 3,
    /// It runs another program.
    Exec = 4,
    /// The child has returned the borrowed memory.
    VforkDone = 5,
    /// It is about to end.
    Exit = 6,
    /// A filter over calls asks what becomes of this one.
    Seccomp = 7,
}

/// The event of a seized tracee that stops for its tracer's sake (PTRACE_EVENT_STOP).
const EVENT_STOP: u32 = 128;
/// Marks a stop at a call ([`Options::MARK_CALLS`]).
const CALL_MARK: u32 = 0x80;

/// Why a tracee stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A signal is about to be delivered.
    Signal(Info),
    /// At a system call.
    Call(CallStop),
    /// Something happened that the options ask for.
    Event(Event),
    /// Its process was stopped by this signal.
    Group(Signal),
    /// The tracer wants it.
    Trap,
}

impl Stop {
    /// The upper half of the status that wait4(2) gives, as `WSTOPSIG` and the event above it.
    pub(super) fn code(self, seized: bool, options: Options) -> u32 {
        let trap = Signal::TRAP.number();
        match self {
            Self::Signal(info) => info.signal.number(),
            Self::Call(_) if options.contains(Options::MARK_CALLS) => trap | CALL_MARK,
            Self::Call(_) => trap,
            Self::Event(event) => trap | (event as u32) << 8,
            Self::Group(signal) if seized => signal.number() | EVENT_STOP << 8,
            Self::Group(signal) => signal.number(),
            Self::Trap => trap | EVENT_STOP << 8,
        }
    }
}

/// A stopped thread, as its tracer sees and changes it.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// Why.
    pub stop: Stop,
    /// Its registers.
    pub regs: UserRegs,
    /// Base of FS.
    pub fs_base: u64,
    /// Base of GS.
    pub gs_base: u64,
    /// What wait4(2) calls it.
    pub code: u32,
    /// The tracer has heard of it.
    pub(super) is_told: bool,
}

/// The vector registers in the processor's own format (XSAVE, not compacted).
pub type Vectors = Vec<u8>;

/// What the stopped thread must do itself, as only it reaches its vector registers.
#[derive(Debug)]
pub enum Ask {
    /// Fill in the image.
    Read(Vectors),
    /// Take over the image.
    Write(Vectors),
    /// Done; a write that the processor refuses is an error.
    Done(core::result::Result<Vectors, ()>),
}

/// What changes of a tracee.
#[derive(Default)]
pub(super) struct State {
    pub options: Options,
    /// It stands still.
    pub stopped: Option<Stopped>,
    /// How it goes on; taken by the thread.
    pub order: Option<Order>,
    /// What belongs to the last event: a new thread's number, an exit status.
    pub message: u64,
    /// A question, and later its answer.
    pub ask: Option<Ask>,
    /// The thread has ended, and the tracer has not heard of it.
    pub ended: Option<ExitStatus>,
    /// The tracer has let go of it.
    pub is_free: bool,
}

/// A traced thread and its tracer.
pub struct Tracee {
    tid: AtomicU32,
    pub(super) thread: Weak<Thread>,
    /// The process it belongs to.
    pub process: Pid,
    /// The process that traces it.
    pub tracer: Pid,
    /// It was seized (PTRACE_SEIZE): it is not sent SIGSTOP, and can be interrupted.
    pub is_seized: bool,
    pub(super) state: Spin<State>,
    /// The thread waits here for an order or a question.
    pub(super) orders: WaitQueue,
    /// The tracer waits here for an answer.
    pub(super) answers: WaitQueue,
}

impl Tracee {
    pub(super) fn new(thread: &Arc<Thread>, tracer: Pid, seized: bool, options: Options) -> Self {
        Self {
            tid: AtomicU32::new(thread.id()),
            thread: Arc::downgrade(thread),
            process: thread.process.id(),
            tracer,
            is_seized: seized,
            state: Spin::new(State {
                options,
                ..State::default()
            }),
            orders: WaitQueue::new(),
            answers: WaitQueue::new(),
        }
    }

    /// The thread's number.
    pub fn tid(&self) -> Tid {
        self.tid.load(Ordering::Relaxed)
    }

    /// The thread got another number: it is the only one left of its process (execve(2)).
    pub fn set_tid(&self, tid: Tid) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// What it wants to be told of.
    pub fn options(&self) -> Options {
        self.state.lock().options
    }

    /// Changes that.
    pub fn set_options(&self, options: Options) {
        self.state.lock().options = options;
    }

    /// What belongs to the last event.
    pub fn message(&self) -> u64 {
        self.state.lock().message
    }

    /// The signals that the stopped thread blocks.
    ///
    /// Errors: `NoSuchProcess` if it runs.
    pub fn mask(&self) -> Result<SignalSet> {
        self.with_stopped(|_| ())?;
        let thread = self.thread.upgrade().ok_or(Error::NoSuchProcess)?;
        Ok(thread.signals.mask())
    }

    /// Changes them.
    ///
    /// Errors: `NoSuchProcess` if it runs.
    pub fn set_mask(&self, mask: SignalSet) -> Result<()> {
        self.with_stopped(|_| ())?;
        let thread = self.thread.upgrade().ok_or(Error::NoSuchProcess)?;
        signal::set_mask(&thread, mask);
        Ok(())
    }

    /// Looks at the stopped thread or changes it; `act` must not block.
    ///
    /// Errors: `NoSuchProcess` if it runs.
    pub fn with_stopped<R>(&self, act: impl FnOnce(&mut Stopped) -> R) -> Result<R> {
        let mut state = self.state.lock();
        if state.order.is_some() {
            return Err(Error::NoSuchProcess);
        }
        state.stopped.as_mut().map(act).ok_or(Error::NoSuchProcess)
    }
}

/// The threads that a process traces; none any more once it has ended.
pub struct Tracees(Spin<Option<Vec<Arc<Tracee>>>>);

impl Default for Tracees {
    fn default() -> Self {
        Self(Spin::new(Some(Vec::new())))
    }
}

impl Tracees {
    /// Errors: `NoSuchProcess` if the tracer has ended, `OutOfMemory`.
    pub(super) fn add(&self, tracee: Arc<Tracee>) -> Result<()> {
        let mut tracees = self.0.lock();
        let tracees = tracees.as_mut().ok_or(Error::NoSuchProcess)?;
        tracees.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        tracees.push(tracee);
        Ok(())
    }

    pub(super) fn remove(&self, tracee: &Tracee) {
        let mut tracees = self.0.lock();
        let gone = tracees.as_mut().and_then(|tracees| {
            let is_it = |other: &Arc<Tracee>| core::ptr::eq(&**other, tracee);
            let at = tracees.iter().position(is_it)?;
            Some(tracees.swap_remove(at))
        });
        drop(tracees);
        drop(gone);
    }

    /// The first for which `find` finds something.
    pub(super) fn find_map<R>(&self, find: impl FnMut(&Arc<Tracee>) -> Option<R>) -> Option<R> {
        self.0.lock().as_ref()?.iter().find_map(find)
    }

    /// All of them, at the tracer's end.
    pub(super) fn close(&self) -> Vec<Arc<Tracee>> {
        self.0.lock().take().unwrap_or_default()
    }
}

/// Whether a thread is traced.
#[derive(Default)]
pub enum Tracing {
    /// By nobody.
    #[default]
    Free,
    /// By the tracee's tracer.
    By(Arc<Tracee>),
    /// It has ended and is not to be traced any more.
    Over,
}
