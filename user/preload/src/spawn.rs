//! The functions that start another program at once: its sockets are lent to it, as to a child (`lending`, `inherited_fds`).
//!
//! The C library starts it in the program's own memory, without the handlers of fork(2). So we lend before, and the other
//! end of the channel is there until the call returns. A program that the C library cannot start leaves nobody who
//! could claim, which is what an end that is closed says.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};

use libc::{FILE, pid_t};

use crate::claims::Channel;
use crate::exec::{self, Strings};
use crate::exit;
use crate::inherited;
use crate::inherited_fds::{self, Environment, Leaving};
use crate::next;
use crate::numbers::{self, Whose};
use crate::shards;
use crate::spawn_actions::Actions;
use crate::without_library;

/// What is lent to a program that is about to be started, of the numbers that are left to it, and our copy of its end of the channel.
fn lend(is_left: impl Fn(&[u32]) -> bool) -> Option<(Leaving, Option<Channel>)> {
    if !exit::is_own_process() || !numbers::has_any() {
        return None;
    }
    let mut stopped = shards::stop();
    let (inherited, channel) = stopped.states[0].lend_to_program(&is_left)?;
    Some((Leaving::new(&inherited)?, channel))
}

type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    Strings,
    Strings,
) -> c_int;

/// # Safety
/// **Caller**.
unsafe fn spawn(
    path: *const c_char,
    given: Strings,
    actions: *const c_void,
    run: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // SAFETY: **Caller**.
    let actions = unsafe { Actions::read(actions) };
    let is_left = |numbers: &[u32]| inherited::is_left(numbers, &actions);
    if !path.is_null() && numbers::has_any() {
        // SAFETY: **Caller**.
        let program = exec::found(unsafe { CStr::from_ptr(path) });
        without_library::prepare(&program, is_left);
    }
    let Some((leaving, _channel)) = lend(is_left) else {
        return run(given);
    };
    // SAFETY: **Caller**.
    let environment = unsafe { Environment::with(given, &leaving) };
    run(environment.pointer())
}

/// `posix_spawn(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    child: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: Strings,
    given: Strings,
) -> c_int {
    let next: Spawn = next::posix_spawn.get();
    // SAFETY: **Caller**.
    unsafe {
        spawn(path, given, actions, |given| {
            next(child, path, actions, attributes, args, given)
        })
    }
}

/// `posix_spawnp(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    child: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: Strings,
    given: Strings,
) -> c_int {
    let next: Spawn = next::posix_spawnp.get();
    // SAFETY: **Caller**.
    unsafe {
        spawn(file, given, actions, |given| {
            next(child, file, actions, attributes, args, given)
        })
    }
}

/// Calls a function of the C library's that starts a shell with the program's own environment.
fn with_shell<T>(run: impl FnOnce() -> T) -> T {
    let Some((leaving, _channel)) = lend(inherited::is_kept) else {
        return run();
    };
    inherited_fds::set_variable(Some(&leaving));
    let outcome = run();
    inherited_fds::set_variable(None);
    outcome
}

/// `system(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: **Caller**.
    with_shell(|| unsafe { next::system.get()(command) })
}

/// `popen(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: **Caller**.
    with_shell(|| unsafe { next::popen.get()(command, mode) })
}

/// What vfork(2) is now: fork(2), as POSIX allows, while the program has sockets of ours, for a child in its parent's memory would
/// have its parent's connections.
extern "C" fn vfork_now() -> *const c_void {
    let is_ours = |number: u32| {
        let whose = numbers::seen(number.cast_signed());
        matches!(whose, Whose::Socket | Whose::Inherited)
    };
    match (0..numbers::end()).any(is_ours) {
        true => libc::fork as *const c_void,
        false => next::vfork.get() as *const c_void,
    }
}

/// `vfork(2)`, which returns twice on its caller's stack: so it is jumped to.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    naked_asm!("sub rsp, 8", "call {now}", "add rsp, 8", "jmp rax", now = sym vfork_now)
}
