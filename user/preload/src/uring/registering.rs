//! io_uring_register(2).
//!
//! As long as a ring is the kernel's, what its program registers is the kernel's, too, and is noted for the time when it is
//! ours. Sockets of ours among the files, and rings of buffers, of whose use the kernel would not tell, make it ours.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use posix::uring::Memory;
use posix::{Errno, Result};

use super::abi;
use super::entering::OwnRing;
use super::syscalls::raw_register;
use super::table::{self, Found};
use super::taking;

/// What may be registered (IORING_REGISTER_*).
mod op {
    use std::ffi::c_uint;

    pub const BUFFERS: c_uint = 0;
    pub const NO_BUFFERS: c_uint = 1;
    pub const FILES: c_uint = 2;
    pub const NO_FILES: c_uint = 3;
    pub const EVENTFD: c_uint = 4;
    pub const NO_EVENTFD: c_uint = 5;
    pub const FILES_UPDATE: c_uint = 6;
    pub const EVENTFD_ASYNC: c_uint = 7;
    pub const PROBE: c_uint = 8;
    pub const ENABLE: c_uint = 12;
    pub const BUFFER_RING: c_uint = 22;
    pub const NO_BUFFER_RING: c_uint = 23;
}

/// Memory of the program's, without a ring.
struct Plain;

impl Memory for Plain {
    fn words(&self, address: u64) -> [u64; 2] {
        // SAFETY: **Caller**: the program has said what lies there.
        unsafe { (address as usize as *const [u64; 2]).read_unaligned() }
    }

    fn half(&self, address: u64) -> u16 {
        self.words(address)[0] as u16
    }

    fn number(&self, address: u64) -> i32 {
        self.words(address)[0] as i32
    }
}

/// `io_uring_register(2)`; an error is a number below zero.
///
/// # Safety
/// **Caller**.
pub unsafe fn register(number: c_int, what: c_uint, at: *mut c_void, count: c_uint) -> c_int {
    let found = match table::find(number) {
        // SAFETY: **Caller**.
        Found::Kernels if unsafe { is_for_us(what, at, count) } => taking::take(number),
        found => found,
    };
    match found {
        // SAFETY: **Caller**.
        Found::Kernels => unsafe {
            let answer = raw_register(number, what, at, count);
            if answer >= 0 {
                note(number, what, at, count);
            }
            answer
        },
        Found::Parents => {
            table::complain_of_parent();
            -libc::EOPNOTSUPP
        }
        // SAFETY: **Caller**.
        Found::Ours(ring) => match unsafe { register_ours(&ring, what, at, count) } {
            Ok(answer) => answer,
            Err(error) => -error.number(),
        },
    }
}

/// Whether it makes a ring ours.
///
/// # Safety
/// **Caller**.
unsafe fn is_for_us(what: c_uint, at: *mut c_void, count: c_uint) -> bool {
    let numbers = match what {
        op::BUFFER_RING => return true,
        op::FILES => at.cast_const().cast(),
        // Where the first one goes, and where the numbers are.
        op::FILES_UPDATE => Plain.words(at as u64)[1] as usize as *const c_int,
        _ => return false,
    };
    // SAFETY: **Caller**.
    unsafe { taking::any_is_ours(numbers, count) }
}

/// The kernel has taken it.
fn note(number: c_int, what: c_uint, at: *mut c_void, count: c_uint) {
    table::with_known(number, |known| match what {
        op::BUFFERS => known.registered.set_buffers(&Plain, at as u64, count),
        op::NO_BUFFERS => known.registered.clear_buffers(),
        op::FILES => {
            known.registered.note_files(count);
            Ok(())
        }
        op::NO_FILES => {
            known.registered.note_no_files();
            Ok(())
        }
        op::EVENTFD | op::EVENTFD_ASYNC => {
            known.eventfd = Some(Plain.number(at as u64));
            Ok(())
        }
        op::NO_EVENTFD => {
            known.eventfd = None;
            Ok(())
        }
        op::ENABLE => {
            known.flags &= !abi::SETUP_R_DISABLED;
            Ok(())
        }
        _ => Ok(()),
    });
}

/// # Safety
/// **Caller**.
unsafe fn register_ours(
    ring: &Arc<OwnRing>,
    what: c_uint,
    at: *mut c_void,
    count: c_uint,
) -> Result<c_int> {
    let address = at as u64;
    let none = |fits: bool| fits.then_some(()).ok_or(Errno::INVALID);
    let is_bare = at.is_null() && count == 0;
    let mut inside = ring.lock();
    let done = inside.with(&ring.set, |own, hands| {
        let registered = &mut own.registered;
        match what {
            op::BUFFERS => registered.set_buffers(hands, address, count),
            op::NO_BUFFERS => none(is_bare).and_then(|()| registered.clear_buffers()),
            op::FILES => registered.set_files(hands, address, count),
            op::NO_FILES => none(is_bare).and_then(|()| registered.clear_files(hands)),
            op::FILES_UPDATE => {
                let [first, numbers] = hands.words(address);
                let updated = registered.update_files(hands, first as u32, numbers, count);
                return updated.map(|count| count as c_int);
            }
            op::EVENTFD | op::EVENTFD_ASYNC => {
                none(count == 1)?;
                set_eventfd(ring, hands.number(address))
            }
            op::NO_EVENTFD => {
                none(is_bare)?;
                match ring.eventfd.swap(-1, Ordering::AcqRel) {
                    -1 => Err(Errno::NO_DEVICE),
                    _ => Ok(()),
                }
            }
            op::BUFFER_RING => {
                none(count == 1)?;
                let ([address, facts], rest) = (hands.words(address), hands.words(address + 16));
                none(rest == [0; 2] && facts >> 48 == 0)?;
                registered.add_group((facts >> 32) as u16, address, facts as u32)
            }
            op::NO_BUFFER_RING => {
                none(count == 1)?;
                let [_, facts] = hands.words(address);
                registered.remove_group((facts >> 32) as u16)
            }
            // SAFETY: **Caller**.
            op::PROBE => match unsafe { raw_register(ring.number, what, at, count) } {
                0 => Ok(()),
                error => Err(Errno::from_number(-error)),
            },
            _ => Err(Errno::INVALID),
        }
        .map(|()| 0)
    });
    drop(inside);
    done
}

fn set_eventfd(ring: &Arc<OwnRing>, number: c_int) -> Result<()> {
    let was = ring
        .eventfd
        .compare_exchange(-1, number, Ordering::AcqRel, Ordering::Acquire);
    was.map_err(|_| Errno::BUSY)?;
    ring.keeper.is_prompt.store(true, Ordering::Release);
    ring.keeper.note_left(ring);
    Ok(())
}
