//! close, dup, fcntl, ioctl.

use std::ffi::{c_int, c_uint, c_ulong};

use posix::{Errno, Result};

use crate::answer;
use crate::logged;
use crate::next;
use crate::numbers::{self, Whose, seen, whose};
use crate::ring_hooks;
use crate::state::{self, Held};

/// Bytes that wait, and that the peer has not acknowledged (include/uapi/asm-generic/ioctls.h).
const FIONREAD: c_ulong = 0x541b;
const SIOCOUTQ: c_ulong = 0x5411;
/// Of these, bytes not even sent; whether the next byte is urgent, which none ever is.
const SIOCOUTQNSD: c_ulong = 0x894b;
const SIOCATMARK: c_ulong = 0x8905;
const FIONBIO: c_ulong = 0x5421;

/// `close(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn close(number: c_int) -> c_int {
    match seen(number) {
        Whose::Kernel => {}
        Whose::Library => return answer::number(Err(Errno::BAD_NUMBER)),
        Whose::LogFile => logged::close(number),
        Whose::Socket | Whose::Set | Whose::Inherited | Whose::Parent => state::release(number),
        Whose::Ring => ring_hooks::close(number),
    }
    // SAFETY: the number is the program's.
    unsafe { next::close.get()(number) }
}

/// `close_range(2)`. What is the library's own stays open, as it does for close(2): a program closes what it does not know
/// before it starts another one.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: no memory is passed.
    let kernels = |first, last| unsafe { next::close_range.get()(first, last, flags) };
    if first > last || flags & !(CLOSE_RANGE_CLOEXEC) != 0 {
        return kernels(first, last);
    }
    let mut from = first;
    for number in first..=last.min(numbers::end().saturating_sub(1)) {
        match seen(number.cast_signed()) {
            Whose::Library => {
                if from < number && kernels(from, number - 1) != 0 {
                    return -1;
                }
                from = number + 1;
            }
            Whose::Kernel => {}
            _ if flags & CLOSE_RANGE_CLOEXEC != 0 => {}
            _ => {
                close(number.cast_signed());
            }
        }
    }
    match from <= last {
        true => kernels(from, last),
        false => 0,
    }
}

/// Only FD_CLOEXEC is set (include/uapi/linux/close_range.h).
const CLOSE_RANGE_CLOEXEC: c_int = 4;

/// Makes a copy of a number by `make`, and has it name the same.
fn copy(old: c_int, make: impl Fn() -> c_int) -> c_int {
    if seen(old) == Whose::LogFile {
        let new = make();
        if new >= 0 {
            logged::copied(old, new);
        }
        return new;
    }
    if seen(old) == Whose::Inherited
        && let Some(new) = copy_unused(old, None, &make)
    {
        return new;
    }
    if !matches!(whose(old), Whose::Socket | Whose::Set) {
        return make();
    }
    let copied = Held::of(old).and_then(|mut held| {
        let new = make();
        match new >= 0 {
            true => name(&mut held, old, new),
            false => Ok(new),
        }
    });
    answer::number_or(copied, make)
}

/// Makes a copy of a number that was inherited and not used, which is no use of it: so programs are given their
/// standard files before they are started. `None` if it is another process's only for a moment.
fn copy_unused(old: c_int, new: Option<c_int>, make: &impl Fn() -> c_int) -> Option<c_int> {
    let mut state = state::lock();
    let is_unused = seen(old) == Whose::Inherited && state.has_inherited(old);
    let is_free = new.is_none_or(|new| seen(new) == Whose::Kernel);
    if !is_unused || !is_free {
        return None;
    }
    let made = make();
    if made >= 0 {
        state.share_number(old, made);
    }
    Some(made)
}

/// `new` names what `old` does.
fn name(held: &mut Held, old: c_int, new: c_int) -> Result<c_int> {
    let named = held
        .host()
        .duplicate(old.cast_unsigned(), new.cast_unsigned());
    match named {
        Ok(()) => numbers::set_at(new, seen(old), held.place()),
        // SAFETY: nobody has the number but us.
        Err(_) => drop(unsafe { next::close.get()(new) }),
    }
    named.map(|()| new)
}

/// `dup(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup(old: c_int) -> c_int {
    // SAFETY: no memory is passed.
    copy(old, || unsafe { next::dup.get()(old) })
}

/// The same where one of them is a file on a log.
fn replace_logged(old: c_int, new: c_int, make: impl Fn() -> c_int) -> c_int {
    // What is there now is closed, whatever it is, and the copy is the kernel's first.
    if seen(new) != Whose::Kernel && close(new) != 0 {
        return -1;
    }
    match seen(old) {
        Whose::LogFile => copy(old, make),
        _ => replace(old, new, make),
    }
}

/// What dup2 and dup3 do besides `make`: `new` names something else from now on.
fn replace(old: c_int, new: c_int, make: impl Fn() -> c_int) -> c_int {
    let is_named = |number| matches!(seen(number), Whose::Socket | Whose::Set);
    if seen(new) == Whose::Library {
        return answer::number(Err(Errno::BAD_NUMBER));
    }
    if old != new && seen(new) == Whose::Inherited {
        state::release(new);
    }
    if old != new && [old, new].map(seen).contains(&Whose::LogFile) {
        return replace_logged(old, new, make);
    }
    if old != new
        && seen(old) == Whose::Inherited
        && let Some(new) = copy_unused(old, Some(new), &make)
    {
        return new;
    }
    // For a copy it is used.
    whose(old);
    if old == new || !is_named(old) && !is_named(new) {
        let made = make();
        if made >= 0 && old != new && seen(new) == Whose::Parent {
            numbers::set(new, Whose::Kernel);
        }
        return made;
    }
    // What the new number named may be another host's.
    let replaced = Held::of(new).and_then(|mut held| {
        let made = make();
        if made < 0 {
            return Ok(made);
        }
        held.release(new);
        drop(held);
        match is_named(old) {
            true => name(&mut Held::of(old)?, old, new),
            false => Ok(made),
        }
    });
    answer::number_or(replaced, make)
}

/// `dup2(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: no memory is passed.
    replace(old, new, || unsafe { next::dup2.get()(old, new) })
}

/// `dup3(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: no memory is passed.
    replace(old, new, || unsafe { next::dup3.get()(old, new, flags) })
}

/// Whether calls on a number wait, as the kernel was told.
///
/// Errors: `MOVED`; a newer library is to be told, too.
fn set_nonblocking(number: c_int, is_nonblocking: bool) -> Result<()> {
    whose(number);
    match Held::of(number) {
        Ok(mut held) => {
            if let Ok(open) = held.host().socket(number.cast_unsigned()) {
                open.set_nonblocking(is_nonblocking);
            }
            Ok(())
        }
        Err(Errno::MOVED) => Err(Errno::MOVED),
        Err(_) => Ok(()),
    }
}

/// `fcntl(2)`, whose third argument is a number or a pointer.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(number: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: **Caller**.
    let pass_on = || unsafe { next::fcntl.get()(number, command, argument) };
    if numbers::is_kernels(number) {
        return pass_on();
    }
    if seen(number) == Whose::LogFile
        && let Some(done) = logged::control(number, command, argument)
    {
        return done;
    }
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copy(number, pass_on),
        libc::F_SETFL => {
            let outcome = pass_on();
            if outcome != 0 {
                return outcome;
            }
            let told = set_nonblocking(number, argument as c_int & libc::O_NONBLOCK != 0);
            answer::done_or(told, pass_on)
        }
        _ => pass_on(),
    }
}

/// The same under the name that programs with large files have for it.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(number: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: **Caller**.
    unsafe { fcntl(number, command, argument) }
}

/// `ioctl(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(number: c_int, request: c_ulong, argument: usize) -> c_int {
    // SAFETY: **Caller**.
    let pass_on = || unsafe { next::ioctl.get()(number, request, argument) };
    match (whose(number), request) {
        (Whose::Socket | Whose::Parent, FIONREAD | SIOCOUTQ | SIOCOUTQNSD | SIOCATMARK) => {
            let waiting = waiting(number, request);
            // SAFETY: **Caller**: the argument points to a number.
            let told = waiting.map(|count| unsafe { *(argument as *mut c_int) = count });
            answer::done_or(told, pass_on)
        }
        (Whose::Socket, FIONBIO) => {
            let outcome = pass_on();
            if outcome != 0 {
                return outcome;
            }
            // SAFETY: **Caller**: the argument points to a number.
            let told = set_nonblocking(number, unsafe { *(argument as *const c_int) } != 0);
            answer::done_or(told, pass_on)
        }
        _ => pass_on(),
    }
}

fn waiting(number: c_int, request: c_ulong) -> Result<c_int> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    let count = match request {
        FIONREAD => held.host().unread(&open)?,
        SIOCOUTQNSD => held.host().untransmitted(&open)?,
        SIOCATMARK => held.host().untransmitted(&open).map(|_| 0)?,
        _ => held.host().unsent(&open)?,
    };
    Ok(c_int::try_from(count).unwrap_or(c_int::MAX))
}
