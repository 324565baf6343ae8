//! Which system calls a thread may make (seccomp(2)).
//!
//! A thread is free, or strict (four calls are left), or has filters: programs that look at each
//! call ([`bpf::CallFilter`]). Filters are only ever added, and all of them run, so that nobody
//! gets rid of one. A new one points to those before it; threads and processes that descend from
//! each other share what they have in common, and what each adds is a branch of that tree.
//!
//! A thread that is not free has [`Flags::SECCOMP`], so the others' calls pay nothing.
//!
//! Bounds: of one thread's filters all together [`PATH_INSTRUCTIONS_MAX`], which is how many
//! steps a call can cost; of one user's [`USER_INSTRUCTIONS_MAX`].
//!
//! Lock order: the threads of a process, [`SEARCHES`], then one thread's state. Whoever changes a state holds
//! the first, so that "all threads alike" ([`Scope::Process`]) is one step, and a thread that
//! is made meanwhile comes before or after it.
//!
//! Not here: what a verdict does to a call (`kernel/linux`), and listeners
//! (`SECCOMP_RET_USER_NOTIF`), which are refused.

use alloc::sync::Arc;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use bpf::CallFilter;
pub use bpf::{Action, CallData, Verdict};
use cred::{Account, Capability, Charge, Counted};
use mach::mem::fallible;
use mach::sync::Spin;
use sched::Flags;
use sync::{Error, Result};

use crate::bpf_program;
use crate::processes::{Thread, Tid};

/// Most instructions in all filters of a thread, each filter costing four more (Linux's
/// MAX_INSNS_PER_PATH).
pub const PATH_INSTRUCTIONS_MAX: u64 = (1 << 18) / 8;
const FILTER_EXTRA: u64 = 4;
/// Most instructions in all filters of one user; Linux leaves that to memory control groups.
pub const USER_INSTRUCTIONS_MAX: u64 = 1 << 20;

/// How often somebody has searched a thread's filters; held while it is done. Threads share
/// filters, so their lists are searched one by one.
static SEARCHES: Spin<u64> = Spin::new(0);

/// A filter and those before it.
pub struct Filter {
    program: CallFilter,
    /// Its verdicts are to be written down.
    is_logged: bool,
    older: Option<Arc<Filter>>,
    /// Instructions from here to the oldest.
    path_instructions: u64,
    /// How many filters that are.
    depth: u32,
    /// The last search ([`SEARCHES`]) that found it.
    found_by: AtomicU64,
    _charge: Charge,
}

/// What a thread may do.
#[derive(Clone, Default)]
pub enum Mode {
    /// Everything.
    #[default]
    Free,
    /// `read`, `write`, `_exit` and `sigreturn`.
    Strict,
    /// What these let pass.
    Filtered(Arc<Filter>),
}

/// A thread's mode.
#[derive(Default)]
pub struct State(Spin<Mode>);

/// Whom a new filter is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The thread that brings it.
    Thread,
    /// All threads of its process.
    Process,
}

/// What became of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Installed {
    /// It is in force.
    Done,
    /// It is not: this thread has filters that the caller has not.
    Diverged(Tid),
}

impl State {
    /// The mode now.
    pub fn get(&self) -> Mode {
        self.0.lock().clone()
    }

    fn exchange(&self, mode: Mode) -> Mode {
        core::mem::replace(&mut self.0.lock(), mode)
    }
}

impl Mode {
    /// As prctl(2) and /proc/PID/status number it.
    pub fn number(&self) -> usize {
        match self {
            Self::Free => 0,
            Self::Strict => 1,
            Self::Filtered(_) => 2,
        }
    }

    /// How many filters there are.
    pub fn filters(&self) -> u32 {
        self.newest().map_or(0, |filter| filter.depth)
    }

    fn newest(&self) -> Option<&Arc<Filter>> {
        match self {
            Self::Filtered(filter) => Some(filter),
            Self::Free | Self::Strict => None,
        }
    }
}

/// From the newest filter to the oldest.
fn chain(newest: Option<&Arc<Filter>>) -> impl Iterator<Item = &Filter> {
    core::iter::successors(newest.map(|filter| &**filter), |filter| {
        filter.older.as_deref()
    })
}

/// Checks a program in the bytes of who wrote it.
///
/// Errors: `Invalid` for what is none, `OutOfMemory`.
pub fn check(instructions: &[[u8; 8]]) -> Result<CallFilter> {
    bpf_program::check_by(instructions, CallFilter::check)
}

/// Whether the thread may bring filters: it gains no rights by running a program that has more,
/// or has them all already.
///
/// Errors: `AccessDenied`.
pub fn check_right(thread: &Thread) -> Result<()> {
    let is_admin = || thread.credentials.with(|who| who.has(Capability::SysAdmin));
    match thread.no_new_privileges.load(Relaxed) || is_admin() {
        true => Ok(()),
        false => Err(Error::AccessDenied),
    }
}

/// Leaves the current thread only the four calls.
///
/// Errors: `Invalid` where it has filters.
pub fn become_strict(thread: &Thread) -> Result<()> {
    thread.process.with_threads(|_| {
        if let Mode::Filtered(_) = thread.seccomp.get() {
            return Err(Error::Invalid);
        }
        put(thread, Mode::Strict);
        Ok(())
    })
}

/// Puts another filter before the current thread's, or before those of all threads.
///
/// Errors: `Invalid` where it is strict, `OutOfMemory` where there would be too many.
pub fn install(
    thread: &Thread,
    program: CallFilter,
    is_logged: bool,
    scope: Scope,
) -> Result<Installed> {
    let uid = thread.credentials.with(|who| who.user.real);
    let charge = Account::of(uid)?
        .charge_many(
            Counted::FilterInstructions,
            program.len() as u64,
            USER_INSTRUCTIONS_MAX,
        )
        .map_err(|_| Error::OutOfMemory)?;
    thread.process.with_threads(|threads| {
        let older = match thread.seccomp.get() {
            Mode::Strict => return Err(Error::Invalid),
            Mode::Free => None,
            Mode::Filtered(older) => Some(older),
        };
        if scope == Scope::Process
            && let Some(other) = diverged(thread, threads)
        {
            return Ok(Installed::Diverged(other));
        }
        let before = older.as_ref().map_or(0, |filter| filter.path_instructions);
        let path_instructions = before + program.len() as u64 + FILTER_EXTRA;
        if path_instructions - FILTER_EXTRA > PATH_INSTRUCTIONS_MAX {
            return Err(Error::OutOfMemory);
        }
        let filter = fallible::arc(Filter {
            found_by: AtomicU64::new(0),
            depth: 1 + older.as_ref().map_or(0, |filter| filter.depth),
            program,
            is_logged,
            older,
            path_instructions,
            _charge: charge,
        })?;
        put(thread, Mode::Filtered(filter.clone()));
        if scope == Scope::Process {
            spread(thread, threads, &filter);
        }
        Ok(Installed::Done)
    })
}

/// A thread that has filters that `thread` has not. Each filter of `thread` is marked first, so
/// that thousands of filters and thousands of threads are looked at one after the other, and not
/// each thread's at each filter.
fn diverged(thread: &Thread, threads: &[Arc<Thread>]) -> Option<Tid> {
    let mut searches = SEARCHES.lock();
    *searches += 1;
    let mode = thread.seccomp.get();
    chain(mode.newest()).for_each(|filter| filter.found_by.store(*searches, Relaxed));
    let is_part = |mode: &Mode| match mode {
        Mode::Free => true,
        Mode::Strict => false,
        Mode::Filtered(filter) => filter.found_by.load(Relaxed) == *searches,
    };
    let mut others = threads.iter();
    let other = others.find(|other| !is_part(&other.seccomp.get()))?;
    Some(other.id())
}

/// Gives all of them the filter. What they had is part of it, so nothing ends with that.
fn spread(thread: &Thread, threads: &[Arc<Thread>], filter: &Arc<Filter>) {
    for other in threads {
        put(other, Mode::Filtered(filter.clone()));
        if thread.no_new_privileges.load(Relaxed) {
            other.no_new_privileges.store(true, Relaxed);
        }
    }
}

fn put(thread: &Thread, mode: Mode) {
    drop(thread.seccomp.exchange(mode));
    thread.set_flags(Flags::SECCOMP);
}

/// A new thread may do what its maker may; called with the threads of the new one's process
/// locked.
pub fn inherit(maker: &Thread, new: &Thread) {
    new.no_new_privileges
        .store(maker.no_new_privileges.load(Relaxed), Relaxed);
    let mode = maker.seccomp.get();
    if mode.number() != 0 {
        put(new, mode);
    }
}

/// What the filters make of a call, and whether that is to be written down.
pub fn judge(filter: &Arc<Filter>, call: &CallData) -> (Verdict, bool) {
    chain(Some(filter)).fold((Verdict::ALLOW, false), |strictest, filter| {
        let verdict = filter.program.run(call);
        match verdict.action < strictest.0.action {
            true => (verdict, filter.is_logged),
            false => strictest,
        }
    })
}

impl Drop for Filter {
    /// One after another: as each is dropped by the next, thousands would exhaust the stack.
    fn drop(&mut self) {
        let mut older = self.older.take();
        while let Some(mut filter) = older.and_then(Arc::into_inner) {
            older = filter.older.take();
        }
    }
}
