//! What a process does about each signal.

use alloc::sync::Arc;

use bitflags::bitflags;
use mach::sync::Spin;

use super::number::Default as DefaultAction;
use super::{Signal, SignalSet};

bitflags! {
    /// `SA_*`; the bits are Linux's own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct ActionFlags: u64 {
        /// Stopped children do not raise SIGCHLD.
        const NOCLDSTOP = 1;
        /// Children leave no zombies.
        const NOCLDWAIT = 2;
        /// The handler takes three arguments.
        const SIGINFO = 4;
        /// `restorer` is valid.
        const RESTORER = 0x0400_0000;
        /// The handler runs on the alternate stack.
        const ONSTACK = 0x0800_0000;
        /// Interrupted calls are restarted.
        const RESTART = 0x1000_0000;
        /// The signal is not blocked while its handler runs.
        const NODEFER = 0x4000_0000;
        /// The action becomes the default one when the handler is called.
        const RESETHAND = 0x8000_0000;
    }
}

/// Who takes the signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Handler {
    /// The kernel, by the signal's default.
    #[default]
    Default,
    /// Nobody.
    Ignore,
    /// The program's function at this address.
    Function(u64),
}

/// The reaction to one signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Action {
    /// Who takes it.
    pub handler: Handler,
    /// How.
    pub flags: ActionFlags,
    /// Where the handler returns to.
    pub restorer: u64,
    /// What is blocked meanwhile.
    pub mask: SignalSet,
}

impl Action {
    /// Whether the signal has no effect at all.
    pub fn ignores(&self, signal: Signal) -> bool {
        match self.handler {
            Handler::Ignore => true,
            Handler::Default => signal.default_action() == DefaultAction::Ignore,
            Handler::Function(_) => false,
        }
    }
}

/// What a process does that has said nothing.
const DEFAULTS: [Action; Signal::MAX as usize] = [Action {
    handler: Handler::Default,
    flags: ActionFlags::empty(),
    restorer: 0,
    mask: SignalSet::EMPTY,
}; Signal::MAX as usize];

/// The reactions to all signals; processes may share one table (`CLONE_SIGHAND`).
pub struct ActionTable(Spin<[Action; Signal::MAX as usize]>);

impl ActionTable {
    /// Each signal's default. Like the copies it is a call of its own, so that the table's two
    /// kilobytes are not for long on a stack that makes a process.
    #[inline(never)]
    pub fn defaults() -> Arc<Self> {
        Arc::new(Self(Spin::new(DEFAULTS)))
    }

    /// The reaction to `signal`.
    pub fn get(&self, signal: Signal) -> Action {
        self.0.lock()[signal.index()]
    }

    /// Sets the reaction; gives back the former.
    pub fn set(&self, signal: Signal, action: Action) -> Action {
        core::mem::replace(&mut self.0.lock()[signal.index()], action)
    }

    /// A copy for a forked process.
    #[inline(never)]
    pub fn fork(&self) -> Arc<Self> {
        Arc::new(Self(Spin::new(*self.0.lock())))
    }

    /// A copy for a new program: functions of the old one are gone, ignored signals
    /// stay ignored.
    pub fn for_new_program(&self) -> Arc<Self> {
        let table = self.fork();
        for action in &mut *table.0.lock() {
            let handler = match action.handler {
                Handler::Ignore => Handler::Ignore,
                _ => Handler::Default,
            };
            *action = Action {
                handler,
                ..Action::default()
            };
        }
        table
    }

    /// A copy in which no signal has a function (`CLONE_CLEAR_SIGHAND`).
    pub fn without_functions(&self) -> Arc<Self> {
        self.for_new_program()
    }
}
