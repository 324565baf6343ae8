//! sendmmsg and recvmmsg: several messages by one call, which is one after the other here, as nothing is saved by
//! telling of many at once.

use std::ffi::{c_int, c_uint};
use std::slice;

use libc::{mmsghdr, timespec};

use crate::answer;
use crate::next;
use crate::passing;
use crate::reading::recvmsg;
use crate::transfer::is_ours;
use crate::writing::sendmsg;

/// Messages of one call at most (UIO_MAXIOV); others are for the next.
const MESSAGES_MAX: usize = 1024;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The messages of a call.
///
/// # Safety
/// **Caller**.
unsafe fn list<'a>(at: *mut mmsghdr, count: c_uint) -> &'a mut [mmsghdr] {
    match at.is_null() || count == 0 {
        true => &mut [],
        // SAFETY: **Caller**.
        false => unsafe { slice::from_raw_parts_mut(at, (count as usize).min(MESSAGES_MAX)) },
    }
}

/// Calls `pass` for each message until one is not passed. How many were, or the error of the first.
fn pass_each(
    messages: &mut [mmsghdr],
    mut pass: impl FnMut(&mut mmsghdr) -> isize,
    mut goes_on: impl FnMut() -> bool,
) -> c_int {
    let mut passed = 0;
    for message in messages {
        let Ok(len) = c_uint::try_from(pass(message)) else {
            return if passed == 0 { -1 } else { passed };
        };
        message.msg_len = len;
        passed += 1;
        if !goes_on() {
            break;
        }
    }
    passed
}

/// `sendmmsg(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    number: c_int,
    at: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: **Caller**.
    let messages = unsafe { list(at, count) };
    if !is_ours(number) {
        // SAFETY: **Caller**.
        let prepare = |message: &mmsghdr| unsafe { passing::prepare(&raw const message.msg_hdr) };
        return match messages.iter().try_for_each(prepare) {
            // SAFETY: **Caller**.
            Ok(()) => unsafe { next::sendmmsg.get()(number, at, count, flags) },
            Err(error) => answer::number(Err(error)),
        };
    }
    // SAFETY: **Caller**.
    let send =
        |message: &mut mmsghdr| unsafe { sendmsg(number, &raw const message.msg_hdr, flags) };
    pass_each(messages, send, || true)
}

/// `recvmmsg(2)`. As there, the time is looked at after each message only.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    number: c_int,
    at: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe { next::recvmmsg.get()(number, at, count, flags, timeout) };
    }
    // SAFETY: **Caller**.
    let (messages, limit) = unsafe { (list(at, count), timeout.as_ref()) };
    let end = limit.map(|limit| rt::monotonic_nanos().saturating_add(nanos_of(limit)));
    let mut later = flags & !libc::MSG_WAITFORONE;
    let receive = |message: &mut mmsghdr| {
        // SAFETY: **Caller**.
        let received = unsafe { recvmsg(number, &raw mut message.msg_hdr, later) };
        if flags & libc::MSG_WAITFORONE != 0 {
            later |= libc::MSG_DONTWAIT;
        }
        received
    };
    pass_each(messages, receive, || {
        end.is_none_or(|end| rt::monotonic_nanos() < end)
    })
}

fn nanos_of(time: &timespec) -> u64 {
    let (secs, nanos) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u64);
    secs.saturating_mul(NANOS_PER_SEC).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> [mmsghdr; 3] {
        // SAFETY: all zeros is a message without anything.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn an_error_after_messages_is_for_the_next_call() {
        let mut lengths = [7, 5, -1].into_iter();
        let mut all = messages();
        let passed = pass_each(&mut all, |_| lengths.next().unwrap_or(-1), || true);
        assert_eq!((passed, all[0].msg_len, all[1].msg_len), (2, 7, 5));
        assert_eq!(pass_each(&mut all, |_| -1, || true), -1);
    }

    #[test]
    fn time_that_is_over_ends_the_call_with_what_it_has() {
        assert_eq!(pass_each(&mut messages(), |_| 1, || false), 1);
        assert_eq!(pass_each(&mut [], |_| 1, || true), 0);
    }
}
