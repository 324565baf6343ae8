//! Sockets of ours that a program passes to another one (SCM_RIGHTS): they are handed over to the kernel's stack first, so
//! that the kernel's descriptor is all there is to them.

use std::ffi::c_int;

use libc::msghdr;
use posix::Result;

use crate::hand_over::hand_over;
use crate::memory;
use crate::numbers;

/// Looks at a message on a socket of others', and hands over what of ours is in it.
///
/// Errors: those of [`hand_over`].
///
/// # Safety
/// **Caller**.
pub unsafe fn prepare(header: *const msghdr) -> Result<()> {
    if !numbers::has_any() {
        return Ok(());
    }
    // SAFETY: **Caller**.
    let Some(message) = (unsafe { header.as_ref() }).filter(|it| it.msg_controllen != 0) else {
        return Ok(());
    };
    // SAFETY: **Caller**.
    let control = unsafe { memory::bytes(message.msg_control, message.msg_controllen) };
    descriptors(control).into_iter().try_for_each(hand_over)
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
