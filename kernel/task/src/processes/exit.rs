//! The end of threads and processes. Nothing of them stays but the status.
//!
//! A thread ends itself, always: others can only ask (`Flags::EXIT`). It releases what
//! it holds while it can still block; the scheduler frees its kernel stack from the next
//! thread's. The last thread of a process takes the memory with it.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use mach::sync::Once;
use mm::{self, AddressSpace};
use sched::Flags;
use sync::{Error, Restart, Result, Wait};

use super::{
    ExitStatus, Pid, Process, Thread, current, family, observer, release_id, ring_work, threads,
};
use crate::ptrace;
use crate::signal;

/// What ends with the locks that a thread holds in its program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockRelease {
    /// The thread.
    Thread,
    /// Its program, as another one is about to run.
    Program,
}

/// Said once at boot by who keeps record locks.
static LOCKS_END: Once<fn(&Thread, LockRelease)> = Once::new();
/// Said once at boot by who keeps what only a number ties to a process.
static PROCESS_ENDS: Once<fn(Pid)> = Once::new();
/// Said once at boot by who ends the machine with it.
static INIT_ENDS: Once<fn(&Process, ExitStatus)> = Once::new();

/// Says who releases the locks of threads that end, while their memory is there; once at boot.
pub fn release_locks_by(release: fn(&Thread, LockRelease)) {
    LOCKS_END.call_once(|| release);
}

/// Releases the locks that the thread holds in its program's memory.
pub fn release_locks(thread: &Thread, with: LockRelease) {
    if let Some(release) = LOCKS_END.get() {
        release(thread, with);
    }
}

/// Says what else happens when a process ends, in its last thread; once at boot.
pub fn on_process_exit(hear: fn(Pid)) {
    PROCESS_ENDS.call_once(|| hear);
}

/// Says what happens when process 1 ends, while its memory is still there; once at boot.
pub fn on_init_exit(hear: fn(&Process, ExitStatus)) {
    INIT_ENDS.call_once(|| hear);
}

/// Ends the current thread; if it is the last one, its process, with the status that
/// was decided first.
pub fn exit_thread(status: ExitStatus) -> ! {
    release_all(status);
    sched::exit()
}

/// Does all but the last step, so that no counted reference is left on the stack that is
/// never returned to.
fn release_all(status: ExitStatus) {
    let me = current();
    let process = me.process.clone();
    ring_work::end_ring_work(&me);
    release_locks(&me, LockRelease::Thread);
    drop(me.files.replace(Arc::default()));
    drop(me.fs.replace(Arc::default()));
    if me.id() == process.id() {
        process.note_leader_exit(status);
    }
    ptrace::note_end(&me, status);
    observer::tell(|observer| observer.note_exit(&me));
    let uid = me.credentials.with(|credentials| credentials.user.real);
    threads::unregister(me.id());
    let share = me.share.lock().take();
    signal::forget_thread(&me);
    if process.remove_thread(&me) {
        end_process(&me, &process, status);
        family::bury(&process, process.final_status(status), (uid, share));
    } else {
        signal::pass_on(&me);
    }
    if me.id() != process.id() {
        release_id(me.id());
    }
    if mach::mem::pile_up() {
        mach::mem::trim(&mut sched::resched_point);
    }
}

/// Releases what the process holds, in the context of its last thread.
fn end_process(me: &Thread, process: &Process, status: ExitStatus) {
    if process.id() == family::INIT
        && let Some(hear) = INIT_ENDS.get()
    {
        hear(process, process.final_status(status));
    }
    ptrace::detach_all(process);
    process.timers.stop_all();
    signal::forget_process(process);
    if let Some(hear) = PROCESS_ENDS.get() {
        hear(process.id());
    }
    process.note_memory();
    let old = process.space.replace(AddressSpace::kernel());
    me.activate_space();
    mm::release(old);
    // The last thread may stay on an idle CPU for long, and the process with it.
    let executable = process.image.lock().executable.take();
    drop(executable);
    process.end_vfork();
}

/// Makes the current thread the only one of its process and its first (execve(2)).
///
/// Errors: `Interrupted` if the process ends, or another thread does the same.
pub fn become_only_thread() -> Result<()> {
    let me = current();
    let process = &me.process;
    process.with_threads(|threads| {
        if me.flags().contains(Flags::EXIT) {
            return Err(Error::Interrupted(Restart::Never));
        }
        for thread in threads
            .iter()
            .filter(|thread| !core::ptr::eq(&***thread, &*me))
        {
            thread.set_flags(Flags::EXIT);
            sched::interrupt(&thread.sched);
        }
        Ok(())
    })?;
    process.thread_left.wait(Wait::UNINTERRUPTIBLE, || {
        let alone = process.with_threads(|threads| threads.len() == 1);
        (alone || me.flags().contains(Flags::EXIT)).then_some(())
    })?;
    if me.flags().contains(Flags::EXIT) {
        return Err(Error::Interrupted(Restart::Never));
    }
    take_first_number(&me);
    Ok(())
}

fn take_first_number(me: &Thread) {
    let old = me.id();
    if old == me.process.id() {
        return;
    }
    threads::unregister(old);
    me.sched.set_id(me.process.id());
    if let Some(tracee) = me.tracee() {
        tracee.set_tid(me.id());
    }
    threads::register(&me.arc());
    release_id(old);
}

/// Forgets what belonged to the program that execve(2) replaces.
pub fn forget_program(me: &Thread) {
    ring_work::end_ring_work(me);
    me.set_rseq(super::Rseq::default());
    *me.signals.alt_stack.lock() = signal::AltStack::default();
    me.process.membarriers.store(0, Ordering::Relaxed);
    let actions = me
        .process
        .signals
        .actions
        .with(|actions| actions.for_new_program());
    drop(me.process.signals.actions.replace(actions));
    me.process.timers.stop_posix();
    me.process.end_vfork();
    family::note_exec(me.process.id());
}
