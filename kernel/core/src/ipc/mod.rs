//! Talking between threads through files: pipes and counters.
//!
//! Each object has one [`crate::poll::Pollee`]; what poll reports is kept in atomics, so
//! that epoll reads it without a lock. Contents are guarded by a sleeping lock, because
//! copying to or from a program may block on a page fault.
//! Not here: sockets (`unix`, `net`), terminals (`tty`), futexes (`task`).

pub mod eventfd;
pub mod fifo;
pub mod pipe;
pub mod signalfd;
pub mod splice;
pub mod timerfd;

/// Makes FIFOs open; once at boot.
pub fn init() {
    crate::fs::register_fifo(fifo::open_attached);
}
