//! Waiting for interrupts that nobody takes.
//!
//! # Problem
//! The eventfd of an interrupt can be read until somebody has read it, so each wait for it is two calls: one that forgets
//! what has come, and one that waits for the next.
//!
//! # Idea
//! An epoll set tells of an edge once. Who waits by a set of its own is told of each interrupt that has come since it was told
//! the last time, and the eventfd is never read. One that came for frames which were found by a look ends the next
//! wait at once; that costs a call, as to forget it would have.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use libc::sigset_t;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Bytes of the kernel's set of signals.
const MASK_BYTES: usize = 8;

/// What has ended a wait: a bit for each file, in the order in which they are watched.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ready(u8);

impl Ready {
    /// Whether the file of a place can be read.
    pub fn has(self, place: usize) -> bool {
        self.0 >> place & 1 != 0
    }
}

/// See the module. One thread waits by it at a time.
#[derive(Debug)]
pub struct Edges(OwnedFd);

impl Edges {
    /// An interrupt, and three other files.
    pub const FILES_MAX: usize = 4;

    /// Watches an interrupt, which has place 0, and other files as long as they can be read: three at most.
    ///
    /// Errors: those of the system; a file that cannot be polled.
    pub fn of(interrupt: BorrowedFd<'_>, others: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&set, interrupt, EventData::new_u64(0), edge)?;
        for (file, place) in others.iter().zip(1..) {
            epoll::add(&set, file, EventData::new_u64(place), EventFlags::IN)?;
        }
        Ok(Self(set))
    }

    /// Waits until a file can be read, or for so many nanoseconds.
    ///
    /// Errors: `Interrupted` by a signal.
    ///
    /// # Safety
    /// `mask` is null, or a set of signals.
    #[inline(always)]
    pub unsafe fn wait(&self, most_nanos: Option<u64>, mask: *const sigset_t) -> io::Result<Ready> {
        let most = most_nanos.map(|nanos| libc::timespec {
            tv_sec: (nanos / NANOS_PER_SEC) as _,
            tv_nsec: (nanos % NANOS_PER_SEC) as _,
        });
        let most = most.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; Self::FILES_MAX];
        // SAFETY: there is room for so many events; the time is null or a time, and the mask is the caller's.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                Self::FILES_MAX,
                most,
                mask,
                MASK_BYTES,
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let bits = events
            .iter()
            .take(count)
            .map(|event| 1u8.checked_shl(event.u64 as u32).unwrap_or(0));
        Ok(Ready(bits.fold(0, |all, bit| all | bit)))
    }
}

impl AsFd for Edges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn counter() -> OwnedFd {
        eventfd(0, EventfdFlags::NONBLOCK).unwrap()
    }

    fn signal(counter: &OwnedFd) {
        rustix::io::write(counter, &1u64.to_ne_bytes()).unwrap();
    }

    fn look(edges: &Edges) -> Ready {
        // SAFETY: there is no mask.
        unsafe { edges.wait(Some(0), ptr::null()) }.unwrap()
    }

    #[test]
    fn each_interrupt_is_told_once_to_each_who_waits_and_is_taken_by_nobody() {
        let interrupt = counter();
        let all = [(); 2].map(|()| Edges::of(interrupt.as_fd(), &[]).unwrap());
        for _ in 0..3 {
            assert!(all.iter().all(|edges| look(edges) == Ready(0)));
            signal(&interrupt);
            assert!(all.iter().all(|edges| look(edges) == Ready(1)));
        }
    }

    #[test]
    fn interrupts_that_came_before_a_wait_end_it_together() {
        let interrupt = counter();
        let edges = Edges::of(interrupt.as_fd(), &[]).unwrap();
        (0..5).for_each(|_| signal(&interrupt));
        assert_eq!([look(&edges), look(&edges)], [Ready(1), Ready(0)]);
    }

    #[test]
    fn other_files_are_told_of_as_long_as_they_can_be_read() {
        let files = [(); 4].map(|()| counter());
        let others = [files[1].as_fd(), files[2].as_fd(), files[3].as_fd()];
        let edges = Edges::of(files[0].as_fd(), &others).unwrap();
        files[2..].iter().for_each(signal);
        assert_eq!([look(&edges), look(&edges)], [Ready(0b1100); 2]);
        assert!(look(&edges).has(3) && !look(&edges).has(1));
    }
}
