//! epoll: `core/epoll` as a file that threads wait for.
//!
//! Lock order: a watched file's pollee, then the ready list, then the waiters; the map of
//! entries is never held together with them.

mod host;

use alloc::string::String;
use alloc::sync::Arc;

use ::epoll::{Nesting, Open, Refusal, Set};
use sync::poll::{Events, Pollee};
use sync::{Error, Mutex, Result, Wait};
use vfs::file::{Fd, File, OpenFile};

use host::Host;

pub use ::epoll::{Event, Trigger, Watch};

/// Who watches whom is the machine's: a chain of epolls may lead through several processes.
static NESTING: Mutex<Nesting> = Mutex::new(Nesting::new());

/// The object of epoll_create(2).
pub struct Epoll(Arc<Set<Host>>);

impl Epoll {
    /// Watching nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Set::new()))
    }

    /// Watches `open` under the number `fd`.
    ///
    /// Errors: `Exists`; `OutOfMemory`; `NotPermitted` for files that are always ready; `TooManySymlinks`
    /// for a cycle or a chain of epolls that is too long; `Invalid` for itself.
    pub fn add(&self, fd: Fd, open: &Arc<OpenFile>, watch: Watch) -> Result<()> {
        if open.file.pollee().is_none() {
            return Err(Error::NotPermitted);
        }
        let added = match open.nested() {
            None => self.0.add(fd, open, watch),
            Some(child) => {
                let mut nesting = NESTING.lock();
                self.0.add_set(fd, (open, &child), watch, &mut nesting)
            }
        };
        added.map_err(error)
    }

    /// Watches for something else from now on; also re-arms a one-shot entry.
    pub fn modify(&self, fd: Fd, open: &Arc<OpenFile>, watch: Watch) -> Result<()> {
        self.0.modify(fd, open, watch).map_err(error)
    }

    /// Watches no longer.
    pub fn remove(&self, fd: Fd, open: &Arc<OpenFile>) -> Result<()> {
        let removed = match open.nested() {
            None => self.0.remove(fd, open),
            Some(child) => {
                let mut nesting = NESTING.lock();
                self.0.remove_set(fd, (open, &child), &mut nesting)
            }
        };
        removed.map_err(error)
    }

    /// Gives what is ready now, at most `limit` reports, to `give`, which may block;
    /// returns how many there were.
    pub fn collect(&self, limit: usize, give: impl FnMut(Event) -> Result<()>) -> Result<usize> {
        self.0.collect(limit, give)
    }

    /// Waits until something may be ready, by the rules of `how`.
    pub fn wait(&self, how: Wait) -> Result<()> {
        let may_be_ready = || self.0.may_be_ready().then_some(());
        self.0.waiters.0.queue.wait(how, may_be_ready)
    }
}

fn error(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Exists => Error::Exists,
        Refusal::NotFound => Error::NotFound,
        Refusal::Invalid => Error::Invalid,
        Refusal::TooDeep => Error::TooManySymlinks,
        Refusal::OutOfMemory => Error::OutOfMemory,
    }
}

impl File for Epoll {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn poll(&self) -> Events {
        match self.0.has_ready() {
            true => Events::READABLE,
            false => Events::empty(),
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.0.waiters.0)
    }

    fn close(&self, _open: &OpenFile) {
        self.0.close();
    }

    fn label(&self) -> String {
        String::from("anon_inode:[eventpoll]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
