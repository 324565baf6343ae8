//! The thread that this CPU runs, and what the scheduler asks of threads.

use alloc::sync::Arc;
use core::cell::Cell;

use cred::{Credentials, Limits, UserShare};
use mach::cpu::PerCpu;
use mach::task::{Context, Current, CurrentSlot};
use mm::user;
use mm::{self, AddressSpace};
use sched::{Calls, Runnable};

use super::process::Image;
use super::{Name, Process, Seed, Thread, family, observer, out_of_memory, realtime_limit};
use crate::names;
use crate::net_namespace;
use crate::signal::{ActionTable, SignalSet};
use vfs::{Contexts, FsContext};

/// Each CPU has one.
static CURRENT: CurrentSlot<Thread> = CurrentSlot::new();
/// Whose program each CPU ran last, where that is asked.
static LAST_USER: PerCpu<Cell<u32>> = PerCpu::new(|| Cell::new(0));

/// The running thread. Cheap: one load.
pub fn current() -> Current<Thread> {
    CURRENT.get()
}

/// The running thread, if this CPU has got that far.
pub fn try_current() -> Option<Current<Thread>> {
    CURRENT.try_get()
}

impl Runnable for Thread {
    fn take_cpu(self: Arc<Self>) -> Arc<dyn Runnable> {
        self.activate_space();
        if mach::speculation::separates_users() {
            separate_users(&self);
        }
        CURRENT.replace(self)
    }
}

/// What a program has taught this CPU's guesses is not for another user's.
fn separate_users(next: &Thread) {
    let user = next.credentials.with(|who| who.user.effective);
    if LAST_USER.get().replace(user) != user {
        mach::speculation::separate_users();
    }
}

/// Makes the boot code that runs on this CPU a thread: number 0, of no program.
pub fn adopt_boot_thread() {
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
        context: Context::boot(),
        files: Arc::default(),
        fs: Arc::default(),
        names: names::first(),
        net: net_namespace::first(),
        credentials: Arc::<Credentials>::default(),
        share: UserShare::of(0),
        mask: SignalSet::EMPTY,
        name: Name::default(),
    });
    let calls = Calls {
        check_realtime_limit: || realtime_limit::enforce(&current()),
        give_samples: || observer::tell(|observer| observer.give_samples(&current())),
        activate_space: || current().activate_space(),
    };
    cred::find_by(
        || current().part(|me| &me.credentials),
        || current().part(|me| &me.process.limits),
    );
    vfs::find_contexts_by(Contexts {
        current: || current().part(|me| &me.fs),
        for_each: for_each_context,
    });
    user::find_space_by(|| current().part(|me| &me.process.space));
    mm::find_spaces_by(for_each_space);
    out_of_memory::init();
    sched::adopt_boot_thread(thread.sched.clone(), calls);
    CURRENT.start(thread);
}

fn for_each_space(look: &mut dyn FnMut(&AddressSpace)) {
    for process in family::processes() {
        let space = process.space.get();
        look(&space);
        mm::leave(space);
    }
}

fn for_each_context(look: &mut dyn FnMut(&FsContext)) {
    for process in family::processes() {
        for thread in process.threads() {
            look(&thread.fs.get());
        }
    }
}

/// What another CPU than the first does from its start on.
pub fn start_cpu() -> ! {
    adopt_boot_thread();
    sched::run()
}
