//! io_uring: its three calls, and what the entries of a ring ask for.
//!
//! `setup` makes a ring and tells its layout, `enter` submits and waits, `register` gives a ring
//! files and buffers. `operation` does what an entry asks for: what works on a file goes through
//! the file that the ring found, as an entry may name one that has no descriptor; what names
//! places or descriptors by itself runs as the system call that it is, with registers made for it.
//!
//! The number of an error is chosen here, for calls as for completions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod call;
mod enter;
mod frame;
mod operation;
mod register;
mod setup;

use kernel_uring::{Ring, RingFile};
use linux_abi::{Call, Entry, Errno};

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[enter::CALLS, register::CALLS, setup::CALLS];

/// The ring that argument 0 stands for.
fn with_ring<R>(
    call: &Call<'_>,
    act: impl FnOnce(&alloc::sync::Arc<Ring>) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let open = call.file(0)?;
    let file = open.file.as_any().downcast_ref::<RingFile>();
    act(&file.ok_or(Errno::EOPNOTSUPP)?.0)
}
