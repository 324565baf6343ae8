//! Making threads and processes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;

use base::VirtAddr;
use bitflags::bitflags;
use cred::{Capability, Credentials, Resource, UNLIMITED, UserShare};
use mach::mem::fallible;
use mach::task::Context;
use mach::trap::UserRegs;
use mm::reclaim;
use mm::user;
use sched::Flags;
use sync::{Error, Result};

use super::latch::Latch;
use super::thread::Seed;
use super::{Process, Thread, Tid, allocate_id, family, observer, release_id, threads};
use crate::ptrace::{self, Event};
use crate::signal::{DuringFork, Signal};

bitflags! {
    /// What parent and child share, and what else is done; Linux's own bits.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CloneFlags: u64 {
        /// The address space.
        const VM = 0x100;
        /// Working directory, root and umask.
        const FS = 0x200;
        /// The descriptor table.
        const FILES = 0x400;
        /// The child has a mount namespace of its own.
        const NEWNS = 0x2_0000;
        /// The reactions to signals.
        const SIGHAND = 0x800;
        /// A descriptor of the child for the parent.
        const PIDFD = 0x1000;
        /// The child is traced if its maker is.
        const PTRACE = 0x2000;
        /// The parent waits until the child runs a program or ends.
        const VFORK = 0x4000;
        /// The child gets the caller's parent.
        const PARENT = 0x8000;
        /// The child is a thread of the caller's process.
        const THREAD = 0x1_0000;
        /// System V semaphore adjustments; there are none.
        const SYSVSEM = 0x4_0000;
        /// The child gets a thread pointer.
        const SETTLS = 0x8_0000;
        /// The child's number is stored in the parent's memory.
        const PARENT_SETTID = 0x10_0000;
        /// The child's number is cleared in its memory when it ends.
        const CHILD_CLEARTID = 0x20_0000;
        /// Ignored since Linux 2.6.
        const DETACHED = 0x40_0000;
        /// The child is not traced just because a tracer asks for all children.
        const UNTRACED = 0x80_0000;
        /// The child's number is stored in its memory.
        const CHILD_SETTID = 0x100_0000;
        /// The child has a UTS namespace of its own.
        const NEWUTS = 0x400_0000;
        /// The child has a network namespace of its own.
        const NEWNET = 0x4000_0000;
        /// An I/O context; there are none.
        const IO = 0x8000_0000;
        /// The child handles no signal with a function.
        const CLEAR_SIGHAND = 0x1_0000_0000;
    }
}

/// A request for a new thread or process.
#[derive(Clone, Copy, Debug)]
pub struct Clone {
    /// What is shared.
    pub flags: CloneFlags,
    /// What tells the parent of the child's end.
    pub exit_signal: Option<Signal>,
    /// Where to store the number for the parent.
    pub parent_tid: VirtAddr,
    /// Where to store it for the child, and to clear it.
    pub child_tid: VirtAddr,
    /// The thread pointer (SETTLS).
    pub tls: u64,
    /// The registers with which the child goes to user mode.
    pub regs: UserRegs,
    /// Runs first in the child; see [`begin_thread`].
    pub entry: fn(usize) -> !,
}

impl Clone {
    /// What a tracer is told of it.
    pub fn event(&self) -> Event {
        match (self.flags.contains(CloneFlags::VFORK), self.exit_signal) {
            (true, _) => Event::Vfork,
            (false, Some(Signal::CHLD)) => Event::Fork,
            (false, _) => Event::Clone,
        }
    }
}

/// A new thread, not yet running.
pub struct Child {
    thread: Arc<Thread>,
    vfork: Option<Arc<Latch>>,
}

impl Child {
    /// Its number.
    pub fn id(&self) -> Tid {
        self.thread.id()
    }

    /// Its process.
    pub fn process(&self) -> &Arc<Process> {
        &self.thread.process
    }

    /// Lets it run; for vfork(2) gives back what opens when it has its own program or has
    /// ended.
    #[must_use]
    pub fn launch(self) -> Option<Arc<Latch>> {
        sched::launch(self.thread.sched.clone(), self.thread);
        self.vfork
    }
}

/// Makes a copy of the current thread by the rules of clone(2).
///
/// Errors: `Invalid` for flags that contradict each other, `WouldBlock` if there are too
/// many, `Interrupted` if a signal comes first, `OutOfMemory`.
pub fn clone(request: &Clone) -> Result<Child> {
    check(request.flags)?;
    let id = allocate_id().ok_or(Error::WouldBlock)?;
    build(request, id).inspect_err(|_| release_id(id))
}

fn check(flags: CloneFlags) -> Result<()> {
    let needs = |flag, other| !flags.contains(flag) || flags.contains(other);
    let consistent = needs(CloneFlags::THREAD, CloneFlags::SIGHAND)
        && needs(CloneFlags::SIGHAND, CloneFlags::VM)
        && !flags.contains(CloneFlags::SIGHAND | CloneFlags::CLEAR_SIGHAND);
    if consistent {
        Ok(())
    } else {
        Err(Error::Invalid)
    }
}

fn build(request: &Clone, id: Tid) -> Result<Child> {
    let me = super::current();
    if request.flags.contains(CloneFlags::THREAD) {
        return assemble(&me, request, id);
    }
    let heard = DuringFork::begin(&me)?;
    let child = assemble(&me, request, id)?;
    family::wait_for_sweeps();
    heard.pass_to(child.process());
    Ok(child)
}

fn assemble(me: &Thread, request: &Clone, id: Tid) -> Result<Child> {
    let flags = request.flags;
    let context = Context::fork(request.entry, 0).ok_or(Error::OutOfMemory)?;
    if flags.contains(CloneFlags::SETTLS) && !context.set_fs_base(request.tls) {
        return Err(Error::NotPermitted);
    }
    let files = me.files.get();
    let files = if flags.contains(CloneFlags::FILES) {
        files
    } else {
        Arc::new(files.fork()?)
    };
    let process = if flags.contains(CloneFlags::THREAD) {
        me.process.clone()
    } else {
        fork_process(me, flags, id)?
    };
    let fs = me.fs.get();
    let fs = if flags.contains(CloneFlags::FS) {
        fs
    } else if flags.contains(CloneFlags::NEWNS) {
        fs.fork_apart()?
    } else {
        fs.fork()
    };
    let names = me.names.get();
    let names = if flags.contains(CloneFlags::NEWUTS) {
        names.copy()?
    } else {
        names
    };
    let net = match flags.contains(CloneFlags::NEWNET) {
        true => me.net.get().create_another()?,
        false => me.net.get(),
    };
    let credentials = me.credentials.get();
    fallible::room_for_arc::<Thread>()?;
    fallible::room_for_arc::<sched::Entity>()?;
    let thread = Thread::new(Seed {
        id,
        process: process.clone(),
        context,
        files,
        fs,
        names,
        net,
        share: share(me, &credentials)?,
        credentials,
        mask: me.signals.mask(),
        name: *me.name.lock(),
    });
    inherit(me, &thread, request);
    observer::admit(me, &thread)
        .and_then(|()| process.add_thread(thread.clone()))
        .inspect_err(|_| observer::tell(|observer| observer.forget(&thread)))?;
    threads::register(&thread);
    if flags.contains(CloneFlags::PARENT_SETTID) {
        // Not earlier: glibc keeps the stack of a thread that has a number. Linux, too, makes the
        // thread if the address is bad.
        let _ = user::write(request.parent_tid, id);
    }
    let vfork = match flags.contains(CloneFlags::THREAD) {
        true => None,
        false => enrol(me, process, request),
    };
    ptrace::adopt(me, &thread, request.event(), flags);
    Ok(Child { thread, vfork })
}

/// Makes the new process a child, and says what its parent waits for if that is to wait.
fn enrol(me: &Thread, process: Arc<Process>, request: &Clone) -> Option<Arc<Latch>> {
    let waits = request.flags.contains(CloneFlags::VFORK);
    let vfork = waits.then(Arc::<Latch>::default);
    *process.vfork.lock() = vfork.clone();
    let is_sibling = request.flags.contains(CloneFlags::PARENT);
    family::enrol(process, me.process.id(), is_sibling, request.exit_signal);
    vfork
}

/// One more thread of the caller's user, within its RLIMIT_NPROC unless it is privileged.
fn share(me: &Thread, who: &Credentials) -> Result<UserShare> {
    let is_free = who.has(Capability::SysResource) || who.has(Capability::SysAdmin);
    let limit = match is_free {
        true => UNLIMITED,
        false => me.process.limits.soft(Resource::Processes),
    };
    UserShare::within(who.user.real, limit)
}

fn fork_process(me: &Thread, flags: CloneFlags, id: Tid) -> Result<Arc<Process>> {
    let space = me.process.space.get();
    let space = if flags.contains(CloneFlags::VM) {
        space
    } else {
        reclaim::with_shrunken_caches(|| space.fork())?
    };
    let actions = me.process.signals.actions.get();
    let actions = if flags.contains(CloneFlags::SIGHAND) {
        actions
    } else if flags.contains(CloneFlags::CLEAR_SIGHAND) {
        actions.without_functions()
    } else {
        actions.fork()
    };
    let image = me.process.image.lock().clone();
    fallible::room_for_arc::<Process>()?;
    family::room_for_one()?;
    let process = Process::new(id, space, me.process.limits.fork(), actions, image);
    let is_dumpable = me.process.dumpable.load(Relaxed);
    process.dumpable.store(is_dumpable, Relaxed);
    process.timers.limit_cpu(&process);
    let adjustment = me.process.oom_adjustment.load(Relaxed);
    process.oom_adjustment.store(adjustment, Relaxed);
    Ok(process)
}

/// What a child takes over besides the shared objects.
fn inherit(me: &Thread, child: &Thread, request: &Clone) {
    let flags = request.flags;
    child.set_flags(me.flags() & Flags::TRACE);
    child.sched.inherit(&me.sched);
    child
        .io_priority
        .store(me.io_priority.load(Relaxed), Relaxed);
    child
        .memory_policy
        .store(me.memory_policy.load(Relaxed), Relaxed);
    child.personality.set(me.personality.bits());
    if flags.contains(CloneFlags::CHILD_CLEARTID) {
        child
            .clear_tid
            .store(request.child_tid.0, core::sync::atomic::Ordering::Relaxed);
    }
    if !flags.contains(CloneFlags::VM) || flags.contains(CloneFlags::VFORK) {
        *child.signals.alt_stack.lock() = *me.signals.alt_stack.lock();
    }
    if !flags.contains(CloneFlags::VM) {
        child.set_rseq(me.rseq());
    }
    let child_tid = if flags.contains(CloneFlags::CHILD_SETTID) {
        request.child_tid
    } else {
        VirtAddr(0)
    };
    *child.start.lock() = Some(Box::new(Start {
        regs: request.regs,
        child_tid,
    }));
}

/// With what a new thread goes to user mode.
pub struct Start {
    regs: UserRegs,
    child_tid: VirtAddr,
}

/// The first thing a new thread does: finishes the switch that brought it here, and
/// tells the registers with which it goes to user mode; `None` for the first thread of
/// process 1.
pub fn begin_thread() -> Option<UserRegs> {
    sched::finish_switch();
    let me = super::current();
    let start = me.start.lock().take()?;
    if start.child_tid.0 != 0 {
        // clone(2) cannot report a bad address any more; Linux ignores it too.
        let _ = user::write(start.child_tid, me.id());
    }
    Some(start.regs)
}
