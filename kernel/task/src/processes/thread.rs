//! One thread: what the scheduler runs.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

use accounting::CpuTime;
use base::Instant;
use cred::{Credentials, UserShare};
use mach::sync::Spin;
use mach::task::Context;
use sched::{Entity, Flags};
use sync::Slot;

use super::fail_nth::FailNth;
use super::fork::Start;
use super::{FutexWaiter, Personality, Process, RingWork, Tid, Watch, seccomp};
use crate::names::Names;
use crate::net_namespace::NetNamespace;
use crate::ptrace::{Tracee, Tracing};
use crate::signal::{SignalSet, ThreadSignals};
use vfs::FsContext;
use vfs::file::FdTable;

/// What a new thread is made of.
pub struct Seed {
    /// Its number.
    pub id: Tid,
    /// Its process.
    pub process: Arc<Process>,
    /// Where it starts.
    pub context: Context,
    /// Its descriptors.
    pub files: Arc<FdTable>,
    /// Where it stands in the tree of files.
    pub fs: Arc<FsContext>,
    /// What it knows the machine as.
    pub names: Arc<Names>,
    /// Its network.
    pub net: Arc<dyn NetNamespace>,
    /// Who it acts for.
    pub credentials: Arc<Credentials>,
    /// What it takes of its user's number of threads.
    pub share: UserShare,
    /// Signals that it blocks.
    pub mask: SignalSet,
    /// Its name.
    pub name: Name,
}

/// A thread's name: up to 15 bytes, the rest zero (Linux's `comm`).
pub type Name = [u8; 16];

/// The registration of a restartable-sequences area (rseq(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rseq {
    /// Its address; 0 for none.
    pub address: u64,
    /// Its length in bytes.
    pub len: u32,
    /// What precedes every abort handler.
    pub signature: u32,
}

/// A thread of a process.
pub struct Thread {
    /// The process it belongs to.
    pub process: Arc<Process>,
    /// What the scheduler knows of it.
    pub sched: Arc<Entity>,
    /// Its descriptors; threads of a process share them.
    pub files: Slot<FdTable>,
    /// Who it acts for.
    pub credentials: Slot<Credentials>,
    /// What it takes of its user's number of threads, until it ends.
    pub(super) share: Spin<Option<UserShare>>,
    /// Its user had too many when it became that user's: it runs no other program.
    pub(super) is_one_too_many: AtomicBool,
    /// Its root, working directory and umask.
    pub fs: Slot<FsContext>,
    /// What it knows the machine as (its UTS namespace).
    pub names: Slot<Names>,
    /// Its network (its network namespace).
    pub net: Slot<dyn NetNamespace>,
    /// Blocked and pending signals.
    pub signals: ThreadSignals,
    /// Its wait for a futex.
    pub futex: FutexWaiter,
    /// Who traces it.
    pub tracing: Spin<Tracing>,
    /// What performance events keep at it.
    pub watch: Watch,
    /// What it has to do for its rings, once it has submitted something.
    pub ring_work: Spin<Option<Arc<dyn RingWork>>>,
    /// Which calls it may make.
    pub seccomp: seccomp::State,
    /// exec grants it no privileges (PR_SET_NO_NEW_PRIVS).
    pub no_new_privileges: AtomicBool,
    /// Its name.
    pub name: Spin<Name>,
    /// When it was created.
    pub started: Instant,
    rseq: Spin<Rseq>,
    /// The word to clear and wake at its end (CLONE_CHILD_CLEARTID); 0 for none.
    pub clear_tid: AtomicU64,
    /// The list of the robust locks it holds; 0 for none.
    pub robust_list: AtomicU64,
    /// The priority of its transfers (ioprio_set(2)), which is only remembered: no device here
    /// serves one request before another.
    pub io_priority: AtomicU16,
    /// From which nodes it wants memory (set_mempolicy(2)), as Linux's number and flags.
    pub memory_policy: AtomicU32,
    /// How it wants its memory and its system to look.
    pub personality: Personality,
    /// The signal it gets when its parent ends (PR_SET_PDEATHSIG); 0 for none.
    pub parent_death_signal: AtomicU32,
    pub(super) start: Spin<Option<Box<Start>>>,
    call_deadline_ns: AtomicU64,
    calls: AtomicU64,
    signals_taken: AtomicU64,
    /// Which of its allocations is to fail, for tests.
    pub fail_nth: FailNth,
    me: Weak<Thread>,
}

impl Thread {
    /// A thread that runs from the seed's context once it is launched.
    #[inline(never)]
    pub fn new(seed: Seed) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            process: seed.process,
            sched: Arc::new(Entity::new(seed.id, seed.context)),
            files: Slot::new(seed.files),
            credentials: Slot::new(seed.credentials),
            share: Spin::new(Some(seed.share)),
            is_one_too_many: AtomicBool::new(false),
            fs: Slot::new(seed.fs),
            names: Slot::new(seed.names),
            net: Slot::new(seed.net),
            signals: ThreadSignals::new(seed.mask),
            futex: FutexWaiter::default(),
            tracing: Spin::default(),
            watch: Watch::new(),
            ring_work: Spin::new(None),
            seccomp: seccomp::State::default(),
            no_new_privileges: AtomicBool::new(false),
            name: Spin::new(seed.name),
            started: mach::time::now(),
            rseq: Spin::default(),
            clear_tid: AtomicU64::new(0),
            robust_list: AtomicU64::new(0),
            io_priority: AtomicU16::new(0),
            memory_policy: AtomicU32::new(0),
            personality: Personality::default(),
            parent_death_signal: AtomicU32::new(0),
            start: Spin::new(None),
            call_deadline_ns: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            signals_taken: AtomicU64::new(0),
            fail_nth: FailNth::default(),
            me: me.clone(),
        })
    }

    /// Its number. It changes only when an exec makes it the first thread.
    pub fn id(&self) -> Tid {
        self.sched.id()
    }

    /// A counted reference to this thread.
    pub fn arc(&self) -> Arc<Self> {
        match self.me.upgrade() {
            Some(arc) => arc,
            None => unreachable!("a thread is only ever reached through its Arc"),
        }
    }

    /// Reasons to stop before user mode.
    pub fn flags(&self) -> Flags {
        self.sched.flags()
    }

    /// Adds reasons. If the thread runs on another CPU, the caller interrupts it next
    /// (`sched::interrupt`).
    pub fn set_flags(&self, flags: Flags) {
        self.sched.set_flags(flags);
    }

    /// Takes reasons away.
    pub fn clear_flags(&self, flags: Flags) {
        self.sched.clear_flags(flags);
    }

    /// Whether a blocking call must end because of a signal, the process' end, or a tracer.
    pub fn has_deliverable_signal(&self) -> bool {
        self.sched.has_deliverable_signal()
    }

    /// What its tracer knows of it, if it is traced.
    pub fn tracee(&self) -> Option<Arc<Tracee>> {
        match &*self.tracing.lock() {
            Tracing::By(tracee) => Some(tracee.clone()),
            Tracing::Free | Tracing::Over => None,
        }
    }

    /// Makes this thread's address space the CPU's.
    #[inline]
    pub fn activate_space(&self) {
        self.process.space.with(|space| space.activate());
    }

    /// Where its restartable sequences are.
    pub fn rseq(&self) -> Rseq {
        *self.rseq.lock()
    }

    /// Says where they are; the area is filled in on the way to user mode.
    pub fn set_rseq(&self, rseq: Rseq) {
        *self.rseq.lock() = rseq;
        self.sched.set_flags_of_switch(match rseq.address {
            0 => Flags::empty(),
            _ => Flags::RSEQ,
        });
    }

    /// CPU time it has used up to now, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.sched.cpu_ns(mach::time::now())
    }

    /// The same by who used it.
    pub fn cpu_time(&self) -> CpuTime {
        self.sched.life.modes_ns(mach::time::now()).into()
    }

    /// System calls that it has made.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// It makes another one. Only the thread itself counts, so this is one instruction.
    #[inline(always)]
    pub fn count_call(&self) {
        self.calls.store(self.calls() + 1, Ordering::Relaxed);
    }

    /// Signals that were delivered to it or discarded when their turn came.
    pub fn signals_taken(&self) -> u64 {
        self.signals_taken.load(Ordering::Relaxed)
    }

    /// It takes another one; only the thread itself counts.
    pub fn count_signal(&self) {
        self.signals_taken
            .store(self.signals_taken() + 1, Ordering::Relaxed);
    }

    /// The deadline of a call with a relative time limit: `fresh`, unless the kernel
    /// restarts the call after a signal without a handler; then the deadline it had.
    pub fn call_deadline(&self, fresh: Instant) -> Instant {
        if self.flags().contains(Flags::RESTARTED) {
            self.clear_flags(Flags::RESTARTED);
            return Instant::from_nanos(self.call_deadline_ns.load(Ordering::Relaxed));
        }
        self.call_deadline_ns
            .store(fresh.as_nanos(), Ordering::Relaxed);
        fresh
    }
}
