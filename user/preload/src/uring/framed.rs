//! Messages of many shots: each behind its facts in a buffer that the program lent ([`uring::Frame`]).

use std::ffi::{c_int, c_void};

use libc::{iovec, msghdr, ssize_t};
use posix::uring::Task;
use posix::{Errno, Result};
use uring::{Frame, Told};

use super::hands::told;

/// `recvmsg(2)` of whose socket it is.
pub type Receive = unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> ssize_t;

/// Receives one as the `struct msghdr` at an address says; how many bytes of the buffer it takes.
///
/// # Safety
/// **Caller**.
///
/// Errors: `BAD_ADDRESS` for a buffer that is too short for the facts, and those of recvmsg(2).
pub unsafe fn receive(
    number: c_int,
    task: &Task<'_>,
    (address, flags): (u64, u32),
    receive: Receive,
) -> Result<i32> {
    // SAFETY: **Caller**: the entry says where its header is.
    let words = unsafe { (address as usize as *const [u64; 6]).read_unaligned() };
    let frame = Frame::new(words).map_err(|_| Errno::INVALID)?;
    let (buffer, len) = task.buffer.ok_or(Errno::INVALID)?;
    let room = (len as usize).checked_sub(frame.payload);
    let room = room.ok_or(Errno::BAD_ADDRESS)?;
    let part = |at: usize| (buffer as usize + at) as *mut c_void;
    let mut payload = iovec {
        iov_base: part(frame.payload),
        iov_len: room,
    };
    let mut header = msghdr {
        msg_name: part(Frame::NAME),
        msg_namelen: (frame.control - Frame::NAME) as u32,
        msg_iov: &raw mut payload,
        msg_iovlen: 1,
        msg_control: part(frame.control),
        msg_controllen: frame.payload - frame.control,
        msg_flags: 0,
    };
    let flags = flags as c_int | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: **Caller**: the buffer is lent, and what the header names lies in it.
    let received = told(unsafe { receive(number, &raw mut header, flags) })?.unsigned_abs();
    task.has_ended.set(received == 0);
    let facts = Told {
        name_len: header.msg_namelen,
        control_len: header.msg_controllen as u32,
        payload_len: received,
        flags: header.msg_flags.cast_unsigned(),
    };
    // SAFETY: **Caller**: the facts have room before the name.
    unsafe { part(0).cast::<[u32; 4]>().write_unaligned(facts.words()) };
    Ok((frame.payload + (received as usize).min(room)) as i32)
}
