//! Which programs may use a terminal: sessions, and groups in the foreground.
//!
//! A session has at most one controlling terminal and a terminal at most one session;
//! both directions change together under `CONTROLLING`. A program in the background that
//! reads is stopped by SIGTTIN, one that changes the terminal by SIGTTOU (termios(3)).
//!
//! Lock order: `CONTROLLING`, then a terminal's lock.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use mach::sync::Spin;
use sync::{Error, Restart, Result};
use task::signal::{Handler, Info, Signal, send_to_group};
use task::{Pid, current, family};

use super::Terminal;

/// Terminals of sessions, which are the machine's: who opens /dev/tty knows its session only.
static CONTROLLING: Spin<BTreeMap<Pid, Arc<Terminal>>> = Spin::new(BTreeMap::new());

fn current_session() -> Option<Pid> {
    family::session_of(current().process.id())
}

fn current_group() -> Option<Pid> {
    family::group_of(current().process.id())
}

/// The controlling terminal of the current process.
pub fn controlling_terminal() -> Option<Arc<Terminal>> {
    let session = current_session()?;
    CONTROLLING.lock().get(&session).cloned()
}

impl Terminal {
    /// Whether it controls the session of the current process.
    pub(super) fn is_controlling(&self) -> bool {
        let session = self.state.lock().session;
        session.is_some() && session == current_session()
    }

    /// Becomes the controlling terminal of the current session (TIOCSCTTY).
    ///
    /// Errors: `NotPermitted` if the process does not lead its session, the session has
    /// another terminal, or the terminal another session.
    pub(super) fn take_control(self: &Arc<Self>) -> Result<()> {
        let me = current().process.id();
        let session = current_session().ok_or(Error::NotPermitted)?;
        if self.state.lock().session == Some(session) {
            return Ok(());
        }
        if session != me {
            return Err(Error::NotPermitted);
        }
        self.control(session, current_group())
    }

    /// Becomes the controlling terminal of `session`, with that group in the foreground.
    pub(super) fn control(self: &Arc<Self>, session: Pid, foreground: Option<Pid>) -> Result<()> {
        let mut controlling = CONTROLLING.lock();
        let mut state = self.state.lock();
        if state.session.is_some() || controlling.contains_key(&session) {
            return Err(Error::NotPermitted);
        }
        state.session = Some(session);
        state.foreground = foreground;
        controlling.insert(session, self.clone());
        Ok(())
    }

    /// The group in the foreground becomes `group` (TIOCSPGRP).
    pub(super) fn set_foreground(&self, group: Pid) -> Result<()> {
        if !self.is_controlling() {
            return Err(Error::NotTerminal);
        }
        self.check_change()?;
        let session = family::session_of_group(group).ok_or(Error::NoSuchProcess)?;
        if Some(session) != current_session() {
            return Err(Error::NotPermitted);
        }
        self.state.lock().foreground = Some(group);
        Ok(())
    }

    /// The group of the current process, if it is of this terminal's session but in the
    /// background.
    fn background_group(&self) -> Option<Pid> {
        let (session, foreground) = {
            let state = self.state.lock();
            (state.session?, state.foreground)
        };
        if Some(session) != current_session() {
            return None;
        }
        current_group().filter(|group| foreground.is_some() && foreground != Some(*group))
    }

    /// Stops a background program that reads.
    ///
    /// Errors: `Io` if it cannot be stopped, else `Interrupted`.
    pub(super) fn check_read(&self) -> Result<()> {
        match self.background_group() {
            None => Ok(()),
            Some(_) if is_deaf_to(Signal::TTIN) => Err(Error::Io),
            Some(group) => stop(group, Signal::TTIN),
        }
    }

    /// Stops a background program that changes the terminal, unless it will not hear.
    pub(super) fn check_change(&self) -> Result<()> {
        match self.background_group() {
            None => Ok(()),
            Some(_) if is_deaf_to(Signal::TTOU) => Ok(()),
            Some(group) => stop(group, Signal::TTOU),
        }
    }
}

/// Whether the current thread blocks or ignores `signal`.
fn is_deaf_to(signal: Signal) -> bool {
    let me = current();
    let action = me
        .process
        .signals
        .actions
        .with(|actions| actions.get(signal));
    me.signals.mask().contains(signal) || action.handler == Handler::Ignore
}

/// Stops the group; the call is made again when it goes on.
fn stop(group: Pid, signal: Signal) -> Result<()> {
    if family::is_orphaned_group(group) {
        return Err(Error::Io);
    }
    send_to_group(group, Info::kernel(signal));
    Err(Error::Interrupted(Restart::IfAsked))
}

/// The session of `leader` gives its terminal up: its leader ended or asked for it
/// (TIOCNOTTY). The programs in the foreground hear SIGHUP and SIGCONT.
pub fn leave_session(leader: Pid) {
    let Some(terminal) = CONTROLLING.lock().remove(&leader) else {
        return;
    };
    let foreground = {
        let mut state = terminal.state.lock();
        state.session = None;
        state.foreground.take()
    };
    if let Some(group) = foreground {
        send_to_group(group, Info::kernel(Signal::HUP));
        send_to_group(group, Info::kernel(Signal::CONT));
    }
}

/// The terminal controls nobody any more; returns whose session it was.
pub(super) fn disconnect(terminal: &Terminal) -> Option<Pid> {
    let mut controlling = CONTROLLING.lock();
    let session = terminal.state.lock().session.take();
    let removed = session.and_then(|session| controlling.remove(&session));
    drop(controlling);
    drop(removed);
    session
}
