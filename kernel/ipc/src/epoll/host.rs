//! The kernel as a set of watched files sees it.

use alloc::sync::{Arc, Weak};

use ::epoll::{Entry, Set, Sharing};
use mach::mem::fallible::Heap;
use mach::sync::Native;

use sync::poll::{Events, Observer, Pollee};
use vfs::file::OpenFile;

use super::Epoll;

/// The kernel.
pub struct Host;

/// Threads in epoll_wait(2), and those for whom the epoll is a file.
#[derive(Default)]
pub struct Waiters(pub(super) Pollee);

impl ::epoll::Host for Host {
    type Family = Native;
    type Memory = Heap;
    type Open = OpenFile;
    type Waiters = Waiters;

    fn resched_point() {
        sched::resched_point();
    }
}

impl ::epoll::Waiters for Waiters {
    fn wake_one(&self) -> bool {
        self.0.queue.wake_one()
    }

    fn notify_observers(&self) {
        self.0.notify_observers(Events::READABLE);
    }
}

impl ::epoll::Open<Host> for OpenFile {
    fn poll(&self, interest: Events) -> Events {
        self.file.poll_for(interest)
    }

    fn observe(&self, entry: Weak<Entry<Host>>, interest: Events, sharing: Sharing) {
        if let Some(pollee) = self.file.pollee() {
            pollee.observe(entry, interest, sharing);
        }
    }

    fn change_interest(&self, entry: Weak<Entry<Host>>, interest: Events) {
        if let Some(pollee) = self.file.pollee() {
            let entry: Weak<dyn Observer> = entry;
            pollee.change_interest(&entry, interest);
        }
    }

    fn forget(&self, entry: Weak<Entry<Host>>) {
        if let Some(pollee) = self.file.pollee() {
            let entry: Weak<dyn Observer> = entry;
            pollee.forget(&entry);
        }
    }

    fn nested(&self) -> Option<Arc<Set<Host>>> {
        let epoll = self.file.as_any().downcast_ref::<Epoll>()?;
        Some(epoll.0.clone())
    }
}
