//! What is known of descriptors that were inherited: the inodes behind them, FD_CLOEXEC, and whether they are the kernel's.

use std::ffi::c_int;

use crate::next;
use crate::numbers::{self, Whose};
use crate::repair::stands_still;
use crate::spawn_actions::Actions;

/// The inode behind a descriptor of that type.
pub fn inode_of(number: c_int, kind: libc::mode_t) -> Option<u64> {
    // SAFETY: all zeros is a `struct stat`, and it is ours.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let outcome = unsafe { libc::fstat(number, &raw mut stat) };
    (outcome == 0 && stat.st_mode & libc::S_IFMT == kind).then_some(stat.st_ino)
}

/// Whether an execve leaves one of a socket's numbers open.
pub fn is_kept(numbers: &[u32]) -> bool {
    let is_kept = |number: &u32| flags_of(number.cast_signed()) & libc::FD_CLOEXEC == 0;
    numbers.iter().any(is_kept)
}

/// Whether one of a socket's numbers is left to a program that is started with those actions.
pub fn is_left(numbers: &[u32], actions: &Actions) -> bool {
    let is_left = |number: &u32| {
        let number = number.cast_signed();
        actions.leave(number, flags_of(number) & libc::FD_CLOEXEC != 0)
    };
    numbers.iter().any(is_left)
}

/// FD_CLOEXEC, or nothing; all bits without such a descriptor.
fn flags_of(number: c_int) -> c_int {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_GETFD) as c_int }
}

/// Whether an execve closes a descriptor of the library's.
pub fn set_closed_by_exec(number: c_int, is_closed: bool) {
    let flags = if is_closed { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_SETFD, flags) };
}

/// A channel that has come from another program.
pub fn as_library(number: c_int) {
    numbers::set(number, Whose::Library);
    set_closed_by_exec(number, true);
}

/// Whether the kernel's socket behind a number has a name, and so is all there is: who handed it over may have been another process.
/// While that is at it, it has a name already and stands still.
pub fn is_handed_over(number: c_int) -> bool {
    // SAFETY: all zeros is a name.
    let mut name: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&name) as libc::socklen_t;
    // SAFETY: both are ours, and as long as is said.
    let told = unsafe { next::getsockname.get()(number, (&raw mut name).cast(), &raw mut len) };
    told == 0 && name.sin_port != 0 && !stands_still(number)
}
