//! Where a thread finds how its request ended.

use block::{Done, Failure};
use hal::DmaBuf;
use hal::caching::WriteBack;
use hal::owner::Device;
use mach::mem::Pinned;
use mach::sync::Spin;
use sync::WaitQueue;

use alloc::sync::Arc;
use alloc::vec::Vec;

/// What keeps a request's memory until the device is done with it.
pub(crate) enum Memory {
    /// None is moved.
    Nothing,
    /// Pages that are told to the device.
    Lent(#[expect(dead_code, reason = "it keeps the pages")] Vec<Pinned<()>>),
    /// Memory of the device's, from which or to which is copied.
    Copied(DmaBuf<WriteBack, Device>),
}

/// What comes with a request.
pub(crate) struct Keep {
    pub outcome: Arc<Outcome>,
    pub memory: Memory,
}

/// How a request ended, and the memory that is ours again.
pub(crate) type Ended = (Result<Done, Failure>, Memory);

/// Filled once.
#[derive(Default)]
pub(crate) struct Outcome {
    ended: Spin<Option<Ended>>,
    waiter: WaitQueue,
}

impl Outcome {
    /// Takes the end, if it is there.
    pub(crate) fn take(&self) -> Option<Ended> {
        self.ended.lock().take()
    }

    /// The request has ended; its thread wakes.
    pub(crate) fn fill(&self, ended: Ended) {
        *self.ended.lock() = Some(ended);
        self.waiter.wake_all();
    }

    /// Its thread wakes to look at the device.
    pub(crate) fn wake(&self) {
        self.waiter.wake_all();
    }

    pub(crate) fn waiter(&self) -> &WaitQueue {
        &self.waiter
    }
}
