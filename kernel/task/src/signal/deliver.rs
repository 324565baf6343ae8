//! Delivery: what the current thread does about the signals that wait for it.

use mach::trap::UserRegs;
use sched::Flags;

use super::action::{Action, ActionFlags, Handler};
use super::init::is_ignored_by_init;
use super::number::Default as DefaultAction;
use super::{Info, Signal, SignalSet, refresh, send, set_mask, stop, take};
use crate::processes::Thread;
use crate::ptrace;

/// What a signal asks of the current thread.
#[derive(Clone, Copy, Debug)]
pub enum Delivery {
    /// Call the program's function at `address`.
    Call {
        /// The signal and its circumstances.
        info: Info,
        /// How to call.
        action: Action,
        /// The function.
        address: u64,
        /// What is blocked again once the function returns.
        mask_after: SignalSet,
    },
    /// The process ends because of this signal.
    Kill(Info),
}

/// Takes signals off the queues until one needs the program's code or its end; `None`
/// when no more are to be delivered, or the process has stopped meanwhile. A tracer sees each
/// of them first, and the registers.
pub fn next_delivery(thread: &Thread, regs: &mut UserRegs) -> Option<Delivery> {
    loop {
        if thread.flags().intersects(Flags::STOP | Flags::EXIT) {
            return None;
        }
        let Some(info) = take(thread, !thread.signals.mask()) else {
            refresh(thread);
            return None;
        };
        thread.count_signal();
        let Some(info) = ptrace::signal(thread, regs, info) else {
            continue;
        };
        let action = thread
            .process
            .signals
            .actions
            .with(|actions| actions.get(info.signal));
        match action.handler {
            Handler::Ignore => {}
            Handler::Default => match default_delivery(thread, info) {
                Some(delivery) => return Some(delivery),
                None => continue,
            },
            Handler::Function(address) => return Some(call(thread, info, action, address)),
        }
    }
}

fn default_delivery(thread: &Thread, info: Info) -> Option<Delivery> {
    if is_ignored_by_init(&thread.process, &info) {
        return None;
    }
    match info.signal.default_action() {
        DefaultAction::Ignore | DefaultAction::Continue => None,
        DefaultAction::Terminate | DefaultAction::Core => Some(Delivery::Kill(info)),
        DefaultAction::Stop => {
            if !stop::is_pointless(&thread.process, info.signal) {
                stop::stop_process(&thread.process, info.signal);
            }
            None
        }
    }
}

/// Sets the mask for the handler, and forgets the action if it is for one time only.
fn call(thread: &Thread, info: Info, action: Action, address: u64) -> Delivery {
    if action.flags.contains(ActionFlags::RESETHAND) {
        let flags = action.flags;
        let once = Action {
            flags,
            ..Action::default()
        };
        thread
            .process
            .signals
            .actions
            .with(|actions| actions.set(info.signal, once));
    }
    let mut mask = thread.signals.mask() | action.mask;
    if !action.flags.contains(ActionFlags::NODEFER) {
        mask = mask.with(info.signal);
    }
    let before = set_mask(thread, mask);
    let mask_after = thread.signals.take_mask_to_restore().unwrap_or(before);
    thread.clear_flags(Flags::MASK);
    Delivery::Call {
        info,
        action,
        address,
        mask_after,
    }
}

/// Back to the mask that a call exchanged, if no handler has taken care of it.
pub fn restore_mask(thread: &Thread) {
    thread.clear_flags(Flags::MASK);
    if let Some(mask) = thread.signals.take_mask_to_restore() {
        set_mask(thread, mask);
    }
}

/// Queues a signal that the thread's own instruction caused and that must not be
/// missed: blocked or ignored, it kills.
pub fn force(thread: &Thread, info: Info) {
    let actions = thread.process.signals.actions.get();
    let blocked = thread.signals.mask().contains(info.signal);
    if blocked || actions.get(info.signal).handler == Handler::Ignore {
        actions.set(info.signal, Action::default());
    }
    if blocked {
        let unblocked = thread.signals.mask().without(SignalSet::of(&[info.signal]));
        set_mask(thread, unblocked);
    }
    thread
        .signals
        .pending
        .lock()
        .discard(SignalSet::of(&[info.signal]));
    // The queue holds one of each standard signal: there is room.
    let _ = send::send_to_thread(&thread.arc(), info);
}

/// The signal's action is not the program's any more: its frame could not be written.
pub fn force_segv(thread: &Thread, failed: Signal) {
    if failed == Signal::SEGV {
        thread
            .process
            .signals
            .actions
            .with(|actions| actions.set(failed, Action::default()));
    }
    force(thread, Info::kernel(Signal::SEGV));
}

/// Changes the reaction to `signal`; gives back the former. A signal that is ignored
/// from now on no longer waits.
pub fn set_action(thread: &Thread, signal: Signal, action: Action) -> Action {
    let old = thread
        .process
        .signals
        .actions
        .with(|actions| actions.set(signal, action));
    if action.ignores(signal) {
        send::discard(&thread.process, SignalSet::of(&[signal]));
    }
    old
}
