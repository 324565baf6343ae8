//! How a thread waits for the interrupts of a card of the program's own, without taking any ([`Edges`]).
//!
//! An ear is an epoll set of the library's beside a bell: it watches the card's interrupt, the bell, and at most one file of
//! the kernel's, always the same ([`Known`]): its part of an epoll set of the program's, or its part of a ring. Who
//! waits for any other files does it by ppoll(2), and forgets what has come before.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Arc, Weak};

use libc::{pollfd, sigset_t};
use posix::{Errno, Result};
use rt::{Edges, Ready};

use crate::numbers::{self, Whose};

/// A file, and what of ours it is the kernel's part of: the number alone may be another file's by now.
struct Part {
    number: c_int,
    owner: Weak<dyn Any + Send + Sync>,
}

/// A file of the kernel's that somebody waits for again and again.
pub struct Known {
    part: Part,
    /// The kernel is asked for it even where frames are there already.
    pub is_urgent: bool,
    /// It was asked.
    pub was_asked: Cell<bool>,
}

impl Known {
    /// The part of `owner` that has this number.
    pub fn of<T: Any + Send + Sync>(number: c_int, owner: &Arc<T>, is_urgent: bool) -> Self {
        let owner: Weak<T> = Arc::downgrade(owner);
        Self {
            part: Part { number, owner },
            is_urgent,
            was_asked: Cell::new(false),
        }
    }
}

/// See the module.
pub struct Ear {
    edges: Edges,
    part: Option<Part>,
}

impl Ear {
    /// For a bell of a host that has this interrupt.
    ///
    /// Errors: those of the system; the file cannot be watched.
    pub fn new(interrupt: BorrowedFd<'_>, bell: c_int, known: Option<&Known>) -> io::Result<Self> {
        let part = known.map(|known| Part {
            number: known.part.number,
            owner: known.part.owner.clone(),
        });
        let numbers = [Some(bell), part.as_ref().map(|part| part.number)];
        // SAFETY: **Ours**, and **Caller**: the program waits for its own file.
        let files = numbers.map(|number| number.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) }));
        let files: Vec<_> = files.into_iter().flatten().collect();
        let edges = Edges::of(interrupt, &files)?;
        numbers::set(edges.as_fd().as_raw_fd(), Whose::Library);
        Ok(Self { edges, part })
    }

    /// Whether it watches this file, or none.
    pub fn is_for(&self, known: Option<&Known>) -> bool {
        match (&self.part, known) {
            (None, None) => true,
            (Some(part), Some(Known { part: other, .. })) => {
                part.number == other.number && part.owner.ptr_eq(&other.owner)
            }
            _ => false,
        }
    }

    /// Waits like ppoll(2) for its files, which are the first of `files`.
    ///
    /// Errors: `INTERRUPTED`.
    pub fn wait(
        &self,
        files: &mut [pollfd],
        most_nanos: Option<u64>,
        mask: *const sigset_t,
    ) -> Result<usize> {
        // SAFETY: the mask is null or the program's (**Caller**).
        let ready = match unsafe { self.edges.wait(most_nanos, mask) } {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Err(Errno::INTERRUPTED);
            }
            // As if none was ready.
            ready => ready.unwrap_or(Ready::default()),
        };
        let mut count = 0;
        for (place, file) in files.iter_mut().enumerate().take(Edges::FILES_MAX) {
            let is_ready = file.fd >= 0 && ready.has(place);
            file.revents = if is_ready { libc::POLLIN } else { 0 };
            count += usize::from(is_ready);
        }
        Ok(count)
    }
}

impl Drop for Ear {
    /// Its descriptor may be closed now.
    fn drop(&mut self) {
        numbers::set(self.edges.as_fd().as_raw_fd(), Whose::Kernel);
    }
}
