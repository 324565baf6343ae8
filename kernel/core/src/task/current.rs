//! The thread that this CPU runs.

use alloc::sync::Arc;

use mach::task::{Context, Current, CurrentSlot};

use super::process::Image;
use super::{Credentials, Limits, Name, Process, Seed, Thread};
use crate::mm::AddressSpace;
use crate::signal::{ActionTable, SignalSet};

static CURRENT: CurrentSlot<Thread> = CurrentSlot::new();

/// The running thread. Cheap: one load.
pub fn current() -> Current<Thread> {
    CURRENT.get()
}

/// Says who runs from now on; gives back who ran. Only the scheduler calls it.
pub fn set_current(next: Arc<Thread>) -> Arc<Thread> {
    CURRENT.replace(next)
}

/// Makes the boot code that runs on this CPU a thread: number 0, of no program.
pub fn adopt_boot_thread() {
    let process = Process::new(
        0,
        AddressSpace::kernel(),
        Limits::default(),
        Arc::<ActionTable>::default(),
        Image::default(),
    );
    CURRENT.start(Thread::new(Seed {
        id: 0,
        process,
        context: Context::boot(),
        files: Arc::default(),
        fs: Arc::default(),
        credentials: Arc::<Credentials>::default(),
        mask: SignalSet::EMPTY,
        name: Name::default(),
    }));
}
