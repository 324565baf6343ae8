//! liburing's functions that enter the kernel, by instructions of its own: ours stand in front of them, and pass on what is about
//! a ring that is the kernel's.
//!
//! | module | what |
//! |---|---|
//! | `layout` | its memory of a ring |
//! | `submitting`, `completions` | functions that enter a ring |
//! | `registering` | functions that tell it something |

mod completions;
mod layout;
mod registering;
mod submitting;

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use libc::{sigset_t, timespec};

use layout::IoUring;

use super::entering::{OwnRing, Patience, after};
use super::table::{self, Found};
use super::taking;
use crate::next;
use crate::numbers::{self, Whose};
use crate::{config, state};

type At = *mut IoUring;

/// Whose a ring is that is about to be entered with so many entries.
///
/// # Safety
/// **Caller**.
unsafe fn found(at: At) -> Found {
    // SAFETY: **Caller**.
    let ring = unsafe { &mut *at };
    match table::find(ring.number) {
        Found::Kernels if config::get().is_none() => Found::Kernels,
        Found::Kernels => {
            if numbers::seen(ring.number) == Whose::Kernel {
                ring.learn();
            }
            // SAFETY: **Caller**. Publishing twice is publishing once.
            let given = unsafe { ring.publish() };
            taking::take_if_used(ring.number, given)
        }
        found => found,
    }
}

/// A ring of ours; else what is to be answered, or that it is the kernel's.
///
/// # Safety
/// **Caller**.
unsafe fn ours(at: At) -> Result<Arc<OwnRing>, Option<c_int>> {
    // SAFETY: **Caller**.
    match unsafe { found(at) } {
        Found::Ours(ring) => Ok(ring),
        Found::Kernels => Err(None),
        Found::Parents => {
            table::complain_of_parent();
            Err(Some(-libc::EOPNOTSUPP))
        }
    }
}

fn answer(entered: posix::Result<c_uint>) -> c_int {
    match entered {
        Ok(submitted) => submitted as c_int,
        Err(error) => -error.number(),
    }
}

/// What a call waits for.
fn patience(least: c_uint, time: Option<&timespec>, mask: *const sigset_t) -> Patience {
    Patience {
        least,
        until: time.map(|span| after(state::now(), span)),
        mask,
    }
}

/// `io_uring_queue_exit(3)`, which closes by instructions of its own.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_queue_exit(at: At) {
    // SAFETY: **Caller**.
    let number = unsafe { (*at).number };
    if numbers::seen(number) == Whose::Ring {
        table::close(number);
    }
    // SAFETY: **Caller**.
    unsafe { next::io_uring_queue_exit.get()(at.cast()) }
}
