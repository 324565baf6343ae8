//! Whose a number is. A byte for each, which may be read without the lock: a number of others' never
//! becomes ours but by the call that makes it.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use posix::NUMBERS_MAX;

/// What a number is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Whose {
    /// The kernel's.
    Kernel = 0,
    /// A socket of ours.
    Socket = 1,
    /// An epoll set that may have such.
    Set = 2,
    /// The library's own descriptor: the program does not know of it.
    Library = 3,
    /// A socket of the parent's.
    Parent = 4,
}

static NUMBERS: [AtomicU8; NUMBERS_MAX] = [const { AtomicU8::new(0) }; NUMBERS_MAX];
/// Beyond the largest number that was ever ours.
static END: AtomicUsize = AtomicUsize::new(0);

/// Whose this number is.
#[inline]
pub fn whose(number: c_int) -> Whose {
    let byte = usize::try_from(number).ok().and_then(|at| NUMBERS.get(at));
    match byte.map_or(0, |byte| byte.load(Ordering::Acquire)) {
        1 => Whose::Socket,
        2 => Whose::Set,
        3 => Whose::Library,
        4 => Whose::Parent,
        _ => Whose::Kernel,
    }
}

/// Whether it is none of ours, as nearly all are.
#[inline]
pub fn is_kernels(number: c_int) -> bool {
    whose(number) == Whose::Kernel
}

/// Whose it is from now on.
pub fn set(number: c_int, whose: Whose) {
    let Some(at) = usize::try_from(number).ok() else {
        return;
    };
    if let Some(byte) = NUMBERS.get(at) {
        END.fetch_max(at + 1, Ordering::Relaxed);
        byte.store(whose as u8, Ordering::Release);
    }
}

/// In a child: what was ours is the parent's, but sets are the kernel's alone.
pub fn become_a_child() {
    for number in 0..END.load(Ordering::Relaxed) as c_int {
        match whose(number) {
            Whose::Socket => set(number, Whose::Parent),
            Whose::Set | Whose::Library => set(number, Whose::Kernel),
            Whose::Kernel | Whose::Parent => {}
        }
    }
}
