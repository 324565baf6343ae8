//! Files on a log: the paths that `SIETCH_LOG` names are not the file system's but on blocks that the program owns
//! (`docs/vsa.md`, "Files of unmodified programs").
//!
//! # Problem
//! A program that appends a record and calls fdatasync has the file system write the record, the file's length and a
//! journal. It asks for one thing: that the record survives.
//!
//! # Idea
//! `SIETCH_LOG=PATTERN=AREA`. A file whose absolute path matches the pattern is one of `sietch_io::storage::LogFiles` on the
//! area. Its number is that of a real descriptor, opened with O_PATH: whatever this library does not know fails
//! on it with EBADF, and nothing is written elsewhere by mistake.
//!
//! | module | what |
//! |---|---|
//! | `config`, `path` | which paths |
//! | `store` | the files, descriptors of them, one lock |
//! | `sync` | fsync, by several threads at once |
//! | `opening`, `names`, `descriptors`, `streams` | the functions that programs call |
//!
//! # What it means
//! `fsync` and `fdatasync`: an entry is appended, and it is durable. Names are durable when the call that changes them
//! returns. What was written and not synced is in the program's memory: it survives neither a loss of power nor the program's
//! being killed; the end of a program syncs it.
//!
//! # fork
//! The log is the parent's. A child's copies of the numbers are good for close(2) only, and opening a path of the pattern is
//! refused there (EBUSY) as in any other process while the parent lives.
//!
//! # Threads
//! Who syncs waits for the device without the store's lock (`sync`). The others write meanwhile, and who syncs, too, waits for its
//! return: then one of them brings out what all have written.
//!
//! Lock order: that of the store, alone. Under it the area's descriptors are used by functions of our own names, which
//! look at the number's byte and go on to the kernel.
//!
//! # Not here
//! Directories (a listing does not show the files), links, access rights (owner and mode are as said by `fstat`), times,
//! locks, memory mappings, copy_file_range, sendfile and splice from such a file.

mod config;
mod descriptors;
mod names;
mod opening;
mod path;
mod store;
mod streams;
mod sync;

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::MutexGuard;

pub use descriptors::{Transfer, close, control, copied, read, read_pieces, write, write_pieces};
use store::Logged;

/// An errno.
type Result<T> = std::result::Result<T, c_int>;

/// -1 and the reason in errno, or what was found.
fn answer<T: From<i8>>(result: Result<T>) -> T {
    result.unwrap_or_else(|number| {
        crate::answer::set_errno(number);
        T::from(-1)
    })
}

thread_local! {
    static FORKING: RefCell<Option<MutexGuard<'static, Logged>>> = const { RefCell::new(None) };
}

/// Held by who forks.
pub fn stop() {
    FORKING.set(Some(store::lock()));
}

/// In the parent.
pub fn go_on() {
    FORKING.take();
}

/// In the child.
pub fn become_a_child() {
    if let Some(mut logged) = FORKING.take() {
        logged.forget();
    }
}

/// The program ends: what was written is brought out.
pub fn end() {
    if let Some(mut logged) = store::lock_at_the_end() {
        logged.sync_all();
    }
}
