//! Waiting for a descriptor.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::edges::Edges;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Waits until a descriptor can be read, or for so many nanoseconds. A signal ends the wait.
///
/// Errors: `NetworkDown` if it never will be, or if `end` can be read.
///
/// Not inlined, because `bench-echo` counts how often it runs.
#[inline(never)]
pub fn wait_for(
    file: BorrowedFd<'_>,
    end: Option<BorrowedFd<'_>>,
    most_nanos: Option<u64>,
) -> io::Result<()> {
    let most = most_nanos.map(|nanos| Timespec {
        tv_sec: (nanos / NANOS_PER_SEC) as _,
        tv_nsec: (nanos % NANOS_PER_SEC) as _,
    });
    let files = [Some(file), end].into_iter().flatten();
    let mut files: Vec<_> = files
        .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
        .collect();
    match poll(&mut files, most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::ERR | PollFlags::HUP;
    let is_over = files.iter().skip(1).any(|end| !end.revents().is_empty());
    match is_over || files[0].revents().intersects(gone) {
        true => Err(Errno::NETDOWN.into()),
        false => Ok(()),
    }
}

/// The same for a card's interrupt, and behind it what ends all waits.
///
/// Errors: those of [`wait_for`].
///
/// Not inlined, for the same reason.
#[inline(never)]
pub fn wait_for_edge(edges: &Edges, most_nanos: Option<u64>) -> io::Result<()> {
    // SAFETY: there is no mask.
    match unsafe { edges.wait(most_nanos, ptr::null()) } {
        Ok(ready) if ready.has(1) => Err(Errno::NETDOWN.into()),
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
