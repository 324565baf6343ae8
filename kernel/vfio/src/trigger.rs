//! What an interrupt does for a program: it counts an eventfd up.

use ipc::eventfd::EventFd;
use mach::sync::Spin;
use sync::{Error, Result};
use vfs::file::FileRef;

use crate::argument;

/// An eventfd of a program's, which lives as long as an interrupt leads to it.
#[derive(Clone)]
pub struct Trigger(FileRef);

impl Trigger {
    /// Of a descriptor; `None` for -1.
    ///
    /// Errors: `BadFile`, `Invalid` for other files.
    pub fn of(fd: i32) -> Result<Option<Self>> {
        if fd == -1 {
            return Ok(None);
        }
        let file = argument::open_file(fd)?.file.clone();
        match file.as_any().is::<EventFd>() {
            true => Ok(Some(Self(file))),
            false => Err(Error::Invalid),
        }
    }

    /// Counts it up. Does not block.
    pub fn signal(&self) {
        if let Some(eventfd) = self.0.as_any().downcast_ref::<EventFd>() {
            eventfd.signal();
        }
    }
}

/// A place for one, which an interrupt looks into.
pub struct TriggerSlot(Spin<Option<Trigger>>);

impl TriggerSlot {
    /// Without one.
    pub const fn new() -> Self {
        Self(Spin::new(None))
    }

    /// Puts one there, or takes it away. What was there is dropped without the lock.
    pub fn set(&self, trigger: Option<Trigger>) {
        let before = core::mem::replace(&mut *self.0.lock(), trigger);
        drop(before);
    }

    /// Counts it up; false if there is none.
    pub fn signal(&self) -> bool {
        let trigger = self.0.lock();
        trigger.as_ref().map(Trigger::signal).is_some()
    }
}
