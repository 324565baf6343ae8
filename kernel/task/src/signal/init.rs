//! Init, process 1, ignores signals that it does not expect (Linux's SIGNAL_UNKILLABLE).
//!
//! The machine ends with process 1, so another process must not be able to end or stop it by
//! accident: a signal to a whole group, to a parent, to everybody. As on Linux (kill(2)), only
//! signals for which it has a handler reach it; SIGKILL and SIGSTOP never do. Unlike there,
//! what it does to itself, its own timers, its terminal and the host still end it: it is the
//! program that was started, and ends as it would end elsewhere.

use super::number::Default as DefaultAction;
use super::{Handler, Info, Origin};
use crate::processes::{Process, family};

/// Whether `process` does not notice a signal that another one sends.
pub(super) fn is_ignored_by_init(process: &Process, info: &Info) -> bool {
    process.id() == family::INIT && is_from_another(info) && is_unexpected(process, info)
}

fn is_from_another(info: &Info) -> bool {
    match info.origin {
        Origin::Process { pid, .. } | Origin::Value { pid, .. } => pid != family::INIT,
        _ => false,
    }
}

fn is_unexpected(process: &Process, info: &Info) -> bool {
    let actions = &process.signals.actions;
    let action = actions.with(|actions| actions.get(info.signal));
    let is_harmful = !matches!(
        info.signal.default_action(),
        DefaultAction::Ignore | DefaultAction::Continue
    );
    action.handler == Handler::Default && is_harmful
}
