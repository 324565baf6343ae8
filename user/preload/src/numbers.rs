//! Whose a number is, and which of the program's hosts has it. A byte for each, which may be read without a lock: a number
//! of others' never becomes ours but by the call that makes it. The host that has it changes only while both are locked.

use std::ffi::c_int;
use std::sync::OnceLock;
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
    /// A socket of another process's, that cannot be had.
    Parent = 4,
    /// One of the parent's, or another process's, that becomes ours when it is used.
    Inherited = 5,
    /// A file on a log.
    LogFile = 6,
    /// A ring of io_uring's, which may have been entered with sockets of ours.
    Ring = 7,
}

/// The lower bits say whose it is, those above which host.
const WHOSE_BITS: u32 = 4;
const WHOSE_MASK: u8 = (1 << WHOSE_BITS) - 1;

static NUMBERS: [AtomicU8; NUMBERS_MAX] = [const { AtomicU8::new(0) }; NUMBERS_MAX];
/// Beyond the largest number that was ever ours.
static END: AtomicUsize = AtomicUsize::new(0);

/// Whose this number is, for a call that uses it: what was inherited is ours then, or is not to be had.
/// Not to be asked by who has the lock.
#[inline]
pub fn whose(number: c_int) -> Whose {
    match seen(number) {
        Whose::Inherited => claim(number),
        whose => whose,
    }
}

#[cold]
fn claim(number: c_int) -> Whose {
    if let Some(claim) = CLAIM.get() {
        claim(number);
    }
    seen(number)
}

/// What makes an inherited number ours.
static CLAIM: OnceLock<fn(c_int)> = OnceLock::new();

/// From now on numbers may be inherited, which `claim` makes ours.
pub fn inherit_by(claim: fn(c_int)) {
    // It is the same one each time.
    CLAIM.set(claim).ok();
}

/// Whose it is now.
#[inline]
pub fn seen(number: c_int) -> Whose {
    match byte_of(number) & WHOSE_MASK {
        1 => Whose::Socket,
        2 => Whose::Set,
        3 => Whose::Library,
        4 => Whose::Parent,
        5 => Whose::Inherited,
        6 => Whose::LogFile,
        7 => Whose::Ring,
        _ => Whose::Kernel,
    }
}

#[inline]
fn byte_of(number: c_int) -> u8 {
    let byte = usize::try_from(number).ok().and_then(|at| NUMBERS.get(at));
    byte.map_or(0, |byte| byte.load(Ordering::Acquire))
}

/// Which of the program's hosts has a socket or a set of ours. It is sure while that one is locked.
#[inline]
pub fn place(number: c_int) -> u8 {
    byte_of(number) >> WHOSE_BITS
}

/// Whether it is none of ours, as nearly all are.
#[inline]
pub fn is_kernels(number: c_int) -> bool {
    seen(number) == Whose::Kernel
}

/// Whether a number can be ours.
pub fn has(number: c_int) -> bool {
    usize::try_from(number).is_ok_and(|number| number < NUMBERS_MAX)
}

/// Whose it is from now on; of ours the first host's.
pub fn set(number: c_int, whose: Whose) {
    set_at(number, whose, 0);
}

/// Whose it is from now on, and which host has it.
pub fn set_at(number: c_int, whose: Whose, place: u8) {
    let Some(at) = usize::try_from(number).ok() else {
        return;
    };
    if let Some(byte) = NUMBERS.get(at) {
        END.fetch_max(at + 1, Ordering::Relaxed);
        byte.store(whose as u8 | place << WHOSE_BITS, Ordering::Release);
    }
}

/// Whether any number ever was.
pub fn has_any() -> bool {
    END.load(Ordering::Relaxed) != 0
}

/// Beyond the largest that ever was.
pub fn end() -> u32 {
    END.load(Ordering::Relaxed) as u32
}

/// In a child: what was ours is the parent's until it is used, but sets are the kernel's alone.
pub fn become_a_child() {
    for number in 0..END.load(Ordering::Relaxed) as c_int {
        match seen(number) {
            Whose::Socket => set(number, Whose::Inherited),
            // A file on a log is the parent's: the kernel's descriptor refuses what is asked of it.
            Whose::Set | Whose::Library | Whose::LogFile => set(number, Whose::Kernel),
            Whose::Kernel | Whose::Parent | Whose::Inherited | Whose::Ring => {}
        }
    }
}

/// All that was ours is none of ours any more: a newer library has it.
pub fn give_up() {
    for number in 0..END.load(Ordering::Relaxed) as c_int {
        if matches!(seen(number), Whose::Socket | Whose::Set | Whose::Library) {
            set(number, Whose::Kernel);
        }
    }
}

/// Nothing more can be inherited.
pub fn disinherit() {
    for number in 0..END.load(Ordering::Relaxed) as c_int {
        if seen(number) == Whose::Inherited {
            set(number, Whose::Parent);
        }
    }
}
