//! What programs may ask for, in any family: `net.core` of sysctl(8).
//!
//! An administrator may change it; what a socket was given before stays.

use core::sync::atomic::{AtomicU32, Ordering};

/// Connections that may wait to be accepted (`somaxconn`).
pub static BACKLOG: AtomicU32 = AtomicU32::new(4096);
/// Bytes that SO_RCVBUF may name (`rmem_max`).
pub static RECEIVE_BUFFER: AtomicU32 = AtomicU32::new(4 << 20);
/// Bytes that SO_SNDBUF may name (`wmem_max`).
pub static SEND_BUFFER: AtomicU32 = AtomicU32::new(4 << 20);

/// Smallest buffers in bytes (Linux' SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF).
pub const SEND_MIN: u32 = 4_608;
/// See [`SEND_MIN`].
pub const RECEIVE_MIN: u32 = 2_304;

/// As many connections as a program asks for and may have.
pub fn backlog(asked: u32) -> usize {
    asked.min(BACKLOG.load(Ordering::Relaxed)) as usize
}

/// The buffer in bytes for sending that a program gets which asks for `asked`: Linux doubles
/// what is allowed, for bookkeeping. A negative number asks for the most.
pub fn send_buffer(asked: i32) -> u32 {
    doubled(&SEND_BUFFER, asked).max(SEND_MIN)
}

/// The same for receiving.
pub fn receive_buffer(asked: i32) -> u32 {
    doubled(&RECEIVE_BUFFER, asked).max(RECEIVE_MIN)
}

fn doubled(most: &AtomicU32, asked: i32) -> u32 {
    let most = most.load(Ordering::Relaxed);
    let asked = u32::try_from(asked).unwrap_or(most).min(most);
    asked.saturating_mul(2)
}
