//! Threads of the kernel's own: of no program, with the kernel's address space and nothing else.
//!
//! They have number 0, as the threads that boot CPUs, and nobody finds or ends them.

use alloc::sync::Arc;

use cred::{Credentials, Limits, UserShare};
use mach::task::Context;
use mm::AddressSpace;

use super::process::Image;
use super::thread::{Name, Seed};
use super::{Process, Thread};
use crate::names;
use crate::net_namespace;
use crate::signal::{ActionTable, SignalSet};

/// Starts a thread that runs `entry`, which finishes the switch to it first
/// (`sched::finish_switch`). False without memory.
#[must_use]
pub fn start_kernel_thread(entry: fn(usize) -> !, name: Name) -> bool {
    let Some(context) = Context::new(entry, 0) else {
        return false;
    };
    let process = Process::new(
        0,
        AddressSpace::kernel(),
        Limits::default(),
        ActionTable::defaults(),
        Image::default(),
    );
    let thread = Thread::new(Seed {
        id: 0,
        process,
        context,
        files: Arc::default(),
        fs: Arc::default(),
        names: names::first(),
        net: net_namespace::first(),
        credentials: Arc::<Credentials>::default(),
        share: UserShare::of(0),
        mask: SignalSet::EMPTY,
        name,
    });
    sched::launch(thread.sched.clone(), thread);
    true
}
