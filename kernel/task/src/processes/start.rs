//! Processes that no process made: the first, and those that the kernel starts beside it.
//!
//! They have no parent, lead a group and a session of their own, and act for root until they say otherwise.
//! Whoever starts one hears of its end by `Process::ended`; then nothing of it is left.

use alloc::sync::Arc;

use cred::{Credentials, Limits, UserShare};
use mach::mem::fallible;
use mach::task::Context;
use mm::AddressSpace;
use sync::{Error, Result};
use vfs::file::FdTable;
use vfs::mount::FsContext;

use super::process::Image;
use super::thread::{Name, Seed};
use super::{Pid, Process, Thread, allocate_id, current, family, release_id, threads};
use crate::names::{self, Names};
use crate::net_namespace::{self, NetNamespace};
use crate::signal::{ActionTable, SignalSet};

/// Where such a process is, and how much it may use.
#[derive(Default)]
pub struct Template {
    fs: Arc<FsContext>,
    namespaces: Option<(Arc<Names>, Arc<dyn NetNamespace>)>,
    limits: Limits,
}

impl Template {
    /// As for the current thread; the directory is the root.
    pub fn of_current() -> Self {
        let me = current();
        let fs = me.fs.get().fork();
        fs.set_cwd(fs.root());
        Self {
            fs,
            namespaces: Some((me.names.get(), me.net.get())),
            limits: me.process.limits.fork(),
        }
    }
}

/// Makes process 1 with one thread that runs `entry`; `None` without memory.
pub fn start_init(entry: fn(usize) -> !) -> Option<Arc<Thread>> {
    start_parentless(entry, 0, &Template::default()).ok()
}

/// Makes a process with one thread, which is to run `entry` with `argument` and is not launched yet.
///
/// Errors: `WouldBlock` if there are too many, `OutOfMemory`.
pub fn start_parentless(
    entry: fn(usize) -> !,
    argument: usize,
    template: &Template,
) -> Result<Arc<Thread>> {
    let id = allocate_id().ok_or(Error::WouldBlock)?;
    build(id, entry, argument, template).inspect_err(|_| release_id(id))
}

fn build(
    id: Pid,
    entry: fn(usize) -> !,
    argument: usize,
    template: &Template,
) -> Result<Arc<Thread>> {
    let context = Context::new(entry, argument).ok_or(Error::OutOfMemory)?;
    let files = fallible::arc(FdTable::default())?;
    fallible::room_for_arc::<ActionTable>()?;
    let actions = ActionTable::defaults();
    let credentials = fallible::arc(Credentials::default())?;
    fallible::room_for_arc::<Process>()?;
    let process = Process::new(
        id,
        AddressSpace::kernel(),
        template.limits.fork(),
        actions,
        Image::default(),
    );
    process.timers.limit_cpu(&process);
    let namespaces = template.namespaces.clone();
    let (names, net) = namespaces.unwrap_or_else(|| (names::first(), net_namespace::first()));
    fallible::room_for_arc::<Thread>()?;
    fallible::room_for_arc::<sched::Entity>()?;
    let thread = Thread::new(Seed {
        id,
        process: process.clone(),
        context,
        files,
        fs: template.fs.fork(),
        names,
        net,
        credentials,
        share: UserShare::of(0),
        mask: SignalSet::EMPTY,
        name: Name::default(),
    });
    family::room_for_one()?;
    process.add_thread(thread.clone())?;
    threads::register(&thread);
    family::begin(process);
    Ok(thread)
}
