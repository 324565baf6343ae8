//! What a ring needs of who knows Linux's calls.

use alloc::sync::Arc;
use core::cell::Cell;

use base::Instant;
use mm::io::UserRange;
use sync::{Error, Result};
use task::Thread;
use uring::{Operation, TimeoutFlags};
use vfs::file::OpenFile;

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// As a call fails.
    Error(Error),
    /// Somebody ended it.
    Cancelled,
    /// Its time is over.
    Expired,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// An operation that is tried.
pub struct Attempt<'a> {
    /// Who tries.
    pub thread: &'a Thread,
    /// What.
    pub operation: &'a Operation,
    /// The descriptor of its entry.
    pub fd: i32,
    /// On what, where it works on a file.
    pub open: Option<&'a Arc<OpenFile>>,
    /// The memory, where the ring chose it.
    pub buffer: Option<UserRange>,
    /// Bytes that earlier tries moved.
    pub done: usize,
    /// It has been tried before.
    pub is_again: bool,
    /// Set by a try that has received nothing, as at the end of a stream: after it no more shots come.
    pub has_ended: Cell<bool>,
}

/// The operations, and Linux's numbers.
pub trait Abi: Send + Sync {
    /// Tries; `WouldBlock` if it would have to wait.
    ///
    /// The number is what the program gets: negative for an error of the call's own.
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<i32>;

    /// The negative number of a failure.
    fn number(&self, failure: Failure) -> i32;

    /// Adds 1 to an eventfd; never blocks.
    fn signal(&self, counter: &OpenFile);

    /// The moment that a `struct timespec` at `address` means.
    fn deadline(&self, address: u64, flags: TimeoutFlags) -> Result<Instant>;
}
