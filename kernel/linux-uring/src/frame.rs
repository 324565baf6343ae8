//! Messages of many shots: each behind its facts in a buffer that the program lent ([`uring::Frame`]).

use base::VirtAddr;
use kernel_uring::Attempt;
use linux_net::header::{self, Parts};
use mm::io::UserRange;
use mm::user;
use sync::{Error, Result};
use uring::{Frame, Told};
use vfs::file::OpenFile;

use crate::call;

/// Receives one as the `struct msghdr` at `at` says; how many bytes of the buffer it takes.
///
/// Errors: `BadAddress` for a buffer that is too short for the facts.
pub fn receive(attempt: &Attempt<'_>, open: &OpenFile, at: VirtAddr, flags: u32) -> Result<i32> {
    let frame = Frame::new(user::read(at)?).map_err(|_| Error::Invalid)?;
    let buffer = attempt.buffer.ok_or(Error::Invalid)?;
    let room = buffer.len.checked_sub(frame.payload);
    let room = room.ok_or(Error::BadAddress)?;
    let part = |at: usize, len| UserRange {
        start: buffer.start + at as u64,
        len,
    };
    let parts = Parts {
        name: part(Frame::NAME, frame.control - Frame::NAME),
        control: part(frame.control, frame.payload - frame.control),
        payload: part(frame.payload, room),
    };
    let told = call::with_args(attempt.thread, [0; 6], |call| {
        header::receive_parts(&call, open, &parts, flags)
    })?;
    attempt.has_ended.set(told.payload_len == 0);
    let facts = Told {
        name_len: told.name_len,
        control_len: told.control_len as u32,
        payload_len: told.payload_len as u32,
        flags: told.flags,
    };
    user::write(buffer.start, facts.words())?;
    Ok((frame.payload + told.payload_len.min(room)) as i32)
}
