//! What programs talk and wait through: pipes, counters, futexes, epoll, contexts of io_submit(2) and System V's
//! objects.
//!
//! Each object has one [`sync::poll::Pollee`]; what poll reports is kept in atomics, so
//! that epoll reads it without a lock. Contents are guarded by a sleeping lock, because
//! copying to or from a program may block on a page fault.
//! Not here: sockets (`unix`, `net`), terminals (`tty`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod aio;
pub mod epoll;
pub mod eventfd;
pub mod fifo;
pub mod futex;
pub mod pipe;
pub mod signalfd;
pub mod splice;
pub mod sysv;
pub mod timerfd;
pub mod transfer;

/// Makes FIFOs open, and semaphores hear of the ends of processes; once at boot.
pub fn init() {
    futex::init();
    sysv::init();
    vfs::register_fifo(fifo::open_attached);
}
