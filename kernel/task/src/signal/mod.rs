//! Signals: what Unix tells a program out of turn.
//!
//! A signal is sent (`send`), waits (`pending`), and is delivered when the thread is on
//! its way to user mode (`deliver`), or taken by a call that waits for it (`wait`).
//! `kernel/linux` builds the frame on the program's stack; here is everything that does
//! not depend on its layout.
//!
//! SIGKILL is never queued: sending it begins the process' end.

mod action;
mod deliver;
mod during_fork;
pub mod files;
mod info;
mod init;
mod number;
mod pending;
mod send;
mod state;
mod stop;
mod wait;

pub use action::{Action, ActionFlags, ActionTable, Handler};
pub use deliver::{Delivery, force, force_segv, next_delivery, restore_mask, set_action};
pub use during_fork::DuringFork;
pub use files::broken_pipe;
pub use info::{Info, Origin, code};
pub use number::{Default as DefaultAction, Signal, SignalSet};
pub use send::{
    check_permission, from_current, pass_on, post_to_process, send_in_sweep, send_to_group,
    send_to_process, send_to_thread,
};
pub use state::{
    AltStack, ProcessSignals, ThreadSignals, forget_process, forget_thread, pending_set, refresh,
    set_mask, set_mask_for_call, take,
};
pub use stop::wait_while_stopped;
pub use wait::{await_signal, pause, suspend};
