//! What programs may ask for, in any family: `net.core` of sysctl(8).
//!
//! An administrator may change it; what a socket was given before stays.

use core::sync::atomic::{AtomicU32, Ordering};

use vfs::socket::OptionName;

/// Connections that may wait to be accepted (`somaxconn`). The administrator's, for the whole
/// machine.
pub static BACKLOG: AtomicU32 = AtomicU32::new(4096);
/// Bytes that SO_RCVBUF may name (`rmem_max`). The administrator's, for the whole machine.
pub static RECEIVE_BUFFER: AtomicU32 = AtomicU32::new(4 << 20);
/// Bytes that SO_SNDBUF may name (`wmem_max`). The administrator's, for the whole machine.
pub static SEND_BUFFER: AtomicU32 = AtomicU32::new(4 << 20);

/// Bytes that a buffer holds which nobody has set.
pub const BUFFER_DEFAULT: u32 = 212_992;
/// Smallest buffers in bytes (Linux's SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF).
pub const SEND_MIN: u32 = 4_608;
/// See [`SEND_MIN`].
pub const RECEIVE_MIN: u32 = 2_304;

/// As many connections as a program asks for and may have.
pub fn backlog(asked: u32) -> usize {
    asked.min(BACKLOG.load(Ordering::Relaxed)) as usize
}

/// The buffer in bytes that a program gets which asks for `asked` by the option `name`: Linux
/// doubles what is allowed, for bookkeeping. A negative number asks for the most; of who may
/// pass the limit (SO_SNDBUFFORCE, SO_RCVBUFFORCE), for the least. `None` for other options.
pub fn buffer(name: OptionName, asked: i32) -> Option<u32> {
    Some(match name {
        OptionName::SendBuffer => doubled(&SEND_BUFFER, asked).max(SEND_MIN),
        OptionName::ReceiveBuffer => doubled(&RECEIVE_BUFFER, asked).max(RECEIVE_MIN),
        OptionName::SendBufferForced => forced(asked).max(SEND_MIN),
        OptionName::ReceiveBufferForced => forced(asked).max(RECEIVE_MIN),
        _ => return None,
    })
}

fn doubled(most: &AtomicU32, asked: i32) -> u32 {
    let most = most.load(Ordering::Relaxed);
    twice(u32::try_from(asked).unwrap_or(most).min(most))
}

fn forced(asked: i32) -> u32 {
    twice(u32::try_from(asked).unwrap_or(0))
}

/// What is told of it must fit a C `int`.
fn twice(bytes: u32) -> u32 {
    2 * bytes.min(i32::MAX as u32 / 2)
}
