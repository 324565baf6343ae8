//! One process: what its threads share.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use accounting::{CpuTime, Sampled, Split};
use base::Instant;
use cred::Limits;
use mach::mem::fallible::TryPush;
use mach::sync::Spin;
use mm::AddressSpace;
use sched::Flags;
use sync::poll::{Events, Pollee};
use sync::{Error, Restart, Result, Slot, WaitQueue};

use super::latch::Latch;
use super::usage::Usage;
use super::{ExitStatus, Pid, Thread, family, seccomp};
use crate::processes::timers::ProcessTimers;
use crate::ptrace::Tracees;
use crate::signal::{ActionTable, Info, ProcessSignals};
use vfs::file::OpenFile;

/// The program that a process runs, for /proc and for messages.
#[derive(Clone, Default)]
pub struct Image {
    /// The file that it came from.
    pub executable: Option<Arc<OpenFile>>,
    /// The addresses of its argument strings: first, and one past the last.
    pub arguments: (u64, u64),
    /// The addresses of its environment strings.
    pub environment: (u64, u64),
    /// The lowest address of its stack when it started.
    pub stack_start: u64,
    /// The auxiliary vector, as the program sees it.
    pub auxv: Arc<[u64]>,
}

/// A group of threads with one address space.
pub struct Process {
    id: Pid,
    /// Its memory; exec exchanges it.
    pub space: Slot<AddressSpace>,
    /// Reactions to signals, and signals for any of the threads.
    pub signals: ProcessSignals,
    /// How much it may use.
    pub limits: Limits,
    /// Interval timers and POSIX timers.
    pub timers: ProcessTimers,
    /// What it runs.
    pub image: Spin<Image>,
    /// When it was forked.
    pub started: Instant,
    /// How many signals for many processes were under way or over when its fork began.
    pub(super) sweeps_before: usize,
    /// Told when it has ended.
    pub ended: Pollee,
    /// A child changed its state.
    pub children_changed: WaitQueue,
    /// The threads that it traces.
    pub tracees: Tracees,
    /// Whether others of its user may look into it (`task::check_access`).
    pub dumpable: AtomicBool,
    /// Orphans among its descendants become its children (PR_SET_CHILD_SUBREAPER).
    pub is_subreaper: AtomicBool,
    /// How readily it is killed when memory runs out (/proc/PID/oom_score_adj).
    pub oom_adjustment: AtomicI32,
    /// Which membarrier(2) commands it has registered for.
    pub membarriers: AtomicU64,
    /// When the profiler has last heard of its mappings; 0 if never.
    pub mappings_told_ns: AtomicU64,
    pub(super) threads: Spin<Vec<Arc<Thread>>>,
    dead_threads: Spin<Dead>,
    pub(super) dead_children: Spin<Usage>,
    pub(super) thread_left: WaitQueue,
    pub(super) vfork: Spin<Option<Arc<Latch>>>,
    has_ended: AtomicBool,
    leader_status: Spin<Option<ExitStatus>>,
    memory: Spin<Usage>,
    cpu_split: Spin<Split>,
    end: Spin<Option<End>>,
}

/// What its dead threads have used: the CPU time is divided with that of the others.
#[derive(Clone, Copy, Default)]
struct Dead {
    cpu: Sampled,
    switches_voluntary: u64,
    switches_forced: u64,
}

impl Dead {
    fn add(&mut self, thread: &Thread) {
        let (voluntary, forced) = thread.sched.switches();
        self.cpu += thread.sched.life.sampled(mach::time::now());
        self.switches_voluntary += voluntary;
        self.switches_forced += forced;
    }
}

/// How a process ends.
#[derive(Clone, Copy, Debug)]
struct End {
    status: ExitStatus,
    /// The signal that killed it, and where the program stood.
    cause: Option<(Info, u64)>,
}

impl Process {
    /// A process without threads. Never inlined: it is large, and so is what comes next in
    /// `fork`.
    #[inline(never)]
    pub fn new(
        id: Pid,
        space: Arc<AddressSpace>,
        limits: Limits,
        actions: Arc<ActionTable>,
        image: Image,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            space: Slot::new(space),
            signals: ProcessSignals::new(actions),
            limits,
            timers: ProcessTimers::default(),
            image: Spin::new(image),
            started: mach::time::now(),
            sweeps_before: family::sweeps_begun(),
            ended: Pollee::new(),
            has_ended: AtomicBool::new(false),
            children_changed: WaitQueue::new(),
            tracees: Tracees::default(),
            dumpable: AtomicBool::new(true),
            is_subreaper: AtomicBool::new(false),
            oom_adjustment: AtomicI32::new(0),
            membarriers: AtomicU64::new(0),
            mappings_told_ns: AtomicU64::new(0),
            threads: Spin::new(Vec::new()),
            dead_threads: Spin::default(),
            dead_children: Spin::default(),
            thread_left: WaitQueue::new(),
            vfork: Spin::new(None),
            leader_status: Spin::new(None),
            memory: Spin::default(),
            cpu_split: Spin::default(),
            end: Spin::new(None),
        })
    }

    /// Its number: that of its first thread.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Looks at its threads; `look` must not block.
    pub fn with_threads<R>(&self, look: impl FnOnce(&[Arc<Thread>]) -> R) -> R {
        look(&self.threads.lock())
    }

    /// Its threads now.
    pub fn threads(&self) -> Vec<Arc<Thread>> {
        self.threads.lock().clone()
    }

    /// Its oldest thread, if it has any left.
    pub fn first_thread(&self) -> Option<Arc<Thread>> {
        self.threads.lock().first().cloned()
    }

    /// Puts a new thread in, which may do what the current one may.
    ///
    /// Errors: `Interrupted` if the process is ending, `OutOfMemory`.
    pub fn add_thread(&self, thread: Arc<Thread>) -> Result<()> {
        let me = super::current();
        let mut threads = self.threads.lock();
        if self.end.lock().is_some() || me.flags().contains(Flags::EXIT) {
            return Err(Error::Interrupted(Restart::Never));
        }
        threads.try_push(thread.clone())?;
        seccomp::inherit(&me, &thread);
        Ok(())
    }

    /// Takes a thread out; true if it was the last one.
    pub(super) fn remove_thread(&self, thread: &Thread) -> bool {
        let (gone, last) = {
            let mut threads = self.threads.lock();
            self.dead_threads.lock().add(thread);
            let index = threads
                .iter()
                .position(|other| core::ptr::eq(&**other, thread));
            (index.map(|index| threads.remove(index)), threads.is_empty())
        };
        drop(gone);
        self.thread_left.wake_all();
        last
    }

    /// The first thread ended by itself; other threads may go on.
    pub(super) fn note_leader_exit(&self, status: ExitStatus) {
        *self.leader_status.lock() = Some(status);
    }

    /// What the parent hears: the decided status, else the first thread's, else `last`.
    pub(super) fn final_status(&self, last: ExitStatus) -> ExitStatus {
        self.exit_status()
            .or(*self.leader_status.lock())
            .unwrap_or(last)
    }

    /// Remembers what the memory was like before it goes.
    pub(super) fn note_memory(&self) {
        let now = self.memory_usage();
        *self.memory.lock() = now;
    }

    fn memory_usage(&self) -> Usage {
        let mut usage = *self.memory.lock();
        self.space.with(|space| {
            let (minor_faults, major_faults) = space.fault_counts();
            let resident_bytes_max = space.resident_bytes_max();
            usage += Usage {
                minor_faults,
                major_faults,
                resident_bytes_max,
                ..Usage::default()
            };
        });
        usage
    }

    /// Ends all threads: each goes on its way to user mode. The first call decides the
    /// status.
    pub fn begin_exit(&self, status: ExitStatus) {
        self.begin_end(End {
            status,
            cause: None,
        });
    }

    /// The same, because of a signal that found the program at `ip`.
    pub fn begin_exit_by(&self, info: Info, ip: u64) {
        let status = ExitStatus::Killed(info.signal);
        self.begin_end(End {
            status,
            cause: Some((info, ip)),
        });
    }

    fn begin_end(&self, end: End) {
        let threads = self.threads.lock();
        self.end.lock().get_or_insert(end);
        for thread in threads.iter() {
            thread.set_flags(Flags::EXIT);
            sched::interrupt(&thread.sched);
        }
    }

    /// The status with which it ends, once that is decided.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.end.lock().map(|end| end.status)
    }

    /// The status with which it has ended, for who is not its parent.
    pub fn ended_with(&self) -> Option<ExitStatus> {
        let status = || self.exit_status().or(*self.leader_status.lock());
        self.has_ended().then(status).flatten()
    }

    /// The signal that ends it, and where the program stood.
    pub fn killed_by(&self) -> Option<(Info, u64)> {
        self.end.lock().and_then(|end| end.cause)
    }

    /// Whether it is ending.
    pub fn is_ending(&self) -> bool {
        self.end.lock().is_some()
    }

    /// Whether nothing of it is left but its status.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Its status is there for the parent.
    pub(super) fn note_end(&self) {
        // Before the look at who listens: a listener enters first, then looks at this.
        self.has_ended.store(true, Ordering::SeqCst);
        self.ended.notify(Events::READABLE);
    }

    /// What its threads have used, dead ones included.
    pub fn usage(&self) -> Usage {
        let all = self.sum_of_threads();
        let mut usage = self.memory_usage();
        usage.cpu = self.divide(all.cpu);
        usage.switches_voluntary = all.switches_voluntary;
        usage.switches_forced = all.switches_forced;
        usage
    }

    /// What its children have used that it has waited for.
    pub fn children_usage(&self) -> Usage {
        *self.dead_children.lock()
    }

    /// CPU time of all its threads, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.sum_of_threads().cpu.run_ns
    }

    /// The same by who used it.
    pub fn cpu_time(&self) -> CpuTime {
        self.divide(self.sum_of_threads().cpu)
    }

    fn divide(&self, measured: Sampled) -> CpuTime {
        self.cpu_split.lock().divide(measured).into()
    }

    /// Of the dead and the living, with nobody between them.
    fn sum_of_threads(&self) -> Dead {
        let threads = self.threads.lock();
        let mut sum = *self.dead_threads.lock();
        threads.iter().for_each(|thread| sum.add(thread));
        sum
    }

    /// The parent that waits in vfork(2) goes on.
    pub fn end_vfork(&self) {
        if let Some(latch) = self.vfork.lock().take() {
            latch.open();
        }
    }
}
