//! One thread: what the scheduler runs.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use mach::task::Context;

use super::{Process, Tid};
use crate::file::FdTable;
use crate::sched::Entity;
use crate::sync::Slot;

bitflags! {
    /// Reasons to stop on the way back to user mode; zero in the common case.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Flags: u32 {
        /// Another thread should run first.
        const RESCHEDULE = 1;
        /// A signal that is not blocked is pending.
        const SIGNAL = 2;
        /// The whole process is ending; the thread must end too.
        const EXIT = 4;
        /// Calls are reported (`--strace`).
        const TRACE = 8;
    }
}

/// A thread of a process.
pub struct Thread {
    /// Its number.
    pub id: Tid,
    /// The process it belongs to.
    pub process: Arc<Process>,
    /// Its registers and kernel stack.
    pub context: Context,
    /// What the scheduler knows of it.
    pub sched: Entity,
    /// Its descriptors; threads of a process share them.
    pub files: Slot<FdTable>,
    flags: AtomicU32,
    me: Weak<Thread>,
}

impl Thread {
    /// A thread that runs from `context` once it is launched.
    pub fn new(
        id: Tid,
        process: Arc<Process>,
        context: Context,
        files: Arc<FdTable>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            id,
            process,
            context,
            sched: Entity::default(),
            files: Slot::new(files),
            flags: AtomicU32::new(0),
            me: me.clone(),
        })
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
        Flags::from_bits_retain(self.flags.load(Ordering::Acquire))
    }

    /// Adds reasons.
    pub fn set_flags(&self, flags: Flags) {
        self.flags.fetch_or(flags.bits(), Ordering::AcqRel);
    }

    /// Takes reasons away.
    pub fn clear_flags(&self, flags: Flags) {
        self.flags.fetch_and(!flags.bits(), Ordering::AcqRel);
    }

    /// Whether a blocking call must end because of a signal or the process' end.
    pub fn has_deliverable_signal(&self) -> bool {
        self.flags().intersects(Flags::SIGNAL | Flags::EXIT)
    }

    /// Makes this thread's address space the CPU's.
    pub fn activate_space(&self) {
        self.process.space.with(|space| space.activate());
    }
}
