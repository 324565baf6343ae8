//! Tracing: one process stops another's threads, looks at them and changes them (ptrace(2)).
//!
//! A traced thread stops by itself, always on its own way to user mode or in a call, where
//! its registers are complete (`stop`). It leaves them in its [`Tracee`], tells its tracer as
//! a child tells its parent, and waits for an order. So a tracer never touches a thread that
//! runs: what it reads and changes is the copy in the tracee, under its lock (`control`). Only
//! the vector registers stay where they are, and the stopped thread fetches them itself.
//!
//! A tracee belongs to two: its thread has it in `Thread::tracing`, and the tracer's process in
//! `Process::tracees`, where wait4(2) looks (`report`). Both let go of it when the tracer
//! detaches or ends, and when the thread ends (`attach`).
//!
//! Lock order: the list of a tracer's tracees, then one tracee; neither is held where a signal
//! is sent or a thread is woken.
//!
//! Unlike Linux, any thread of the tracer's process may give orders, not only the one that
//! attached, and a thread that ends does not keep its number until the tracer has waited for it.
//!
//! Not here: the numbers of requests and the layout of registers (`kernel/linux`).

mod attach;
mod control;
mod report;
mod stop;
mod tracee;

pub use attach::{adopt, attach, detach_all, forbids_rights, note_end, trace_me};
pub use control::{Mode, Order, ask_vectors, detach, find, interrupt, resume};
pub use report::poll;
pub use stop::{CallStop, call_entry, call_exit, event, pause_stepping, signal, stopped, trap};
pub use tracee::{Ask, Event, Options, Stop, Stopped, Tracee, Tracees, Tracing, Vectors};
