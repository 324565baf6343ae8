//! Sockets of ours that a program would pass to another one (SCM_RIGHTS): they are refused. The other one would get the
//! kernel's socket that stands behind the number, which has no peer, and the connection would end without a word when the
//! program closes it.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::msghdr;
use posix::{Errno, Result};

use crate::memory;
use crate::numbers::{Whose, seen};

/// Whether it was said already.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Looks at a message on a socket of others'.
///
/// Errors: `NOT_SUPPORTED` if a socket of ours is in it.
///
/// # Safety
/// **Caller**.
pub unsafe fn check(header: *const msghdr) -> Result<()> {
    // SAFETY: **Caller**.
    let Some(message) = (unsafe { header.as_ref() }).filter(|it| it.msg_controllen != 0) else {
        return Ok(());
    };
    // SAFETY: **Caller**.
    let control = unsafe { memory::bytes(message.msg_control, message.msg_controllen) };
    let is_ours = |number: &c_int| matches!(seen(*number), Whose::Socket | Whose::Inherited);
    if !descriptors(control).iter().any(is_ours) {
        return Ok(());
    }
    if !IS_TOLD.swap(true, Relaxed) {
        eprintln!("libsietch: sockets on a link of the program's cannot be passed to another one.");
    }
    Err(Errno::NOT_SUPPORTED)
}

/// Bytes of `struct cmsghdr`, and of what its length is rounded up to.
const HEADER_BYTES: usize = 16;
const ALIGN_BYTES: usize = 8;

/// The descriptors in control messages, as far as these are whole.
fn descriptors(mut control: &[u8]) -> Vec<c_int> {
    let mut found = Vec::new();
    while let Some((header, _)) = control.split_first_chunk::<HEADER_BYTES>() {
        let [l0, l1, l2, l3, l4, l5, l6, l7, level @ .., _, _, _, _] = *header;
        let kind = [header[12], header[13], header[14], header[15]];
        let len = u64::from_ne_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let Some(data) = control.get(HEADER_BYTES..len) else {
            break;
        };
        let what = (c_int::from_ne_bytes(level), c_int::from_ne_bytes(kind));
        if what == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            let (numbers, _) = data.as_chunks();
            found.extend(numbers.iter().map(|number| c_int::from_ne_bytes(*number)));
        }
        let next = len.next_multiple_of(ALIGN_BYTES);
        control = control.get(next..).unwrap_or_default();
    }
    found
}
