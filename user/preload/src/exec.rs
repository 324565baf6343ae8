//! The functions that make this process another program: sockets go along (`inherited_fds`).

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{env, iter};

use crate::answer;
use crate::inherited_fds::{self, Environment};
use crate::next;
use crate::without_library;

pub type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: Strings;
}

/// The program's environment.
pub fn own_environment() -> Strings {
    // SAFETY: the C library's variable, which is read as its own functions do.
    unsafe { environ }
}

/// Calls `run` with an environment by which the new program finds its sockets.
///
/// # Safety
/// **Caller**: the path and the environment are as the manual says.
unsafe fn become_program(
    path: *const c_char,
    given: Strings,
    run: impl FnOnce(Strings) -> c_int,
) -> c_int {
    if !path.is_null() {
        // SAFETY: **Caller**.
        without_library::prepare_to_become(unsafe { CStr::from_ptr(path) });
    }
    let (stopped, leaving) = inherited_fds::leave();
    // SAFETY: **Caller**.
    let environment = leaving
        .as_ref()
        .map(|leaving| unsafe { Environment::with(given, leaving) });
    let outcome = run(environment.as_ref().map_or(given, Environment::pointer));
    let why = answer::errno();
    drop((leaving, stopped));
    answer::set_errno(why);
    outcome
}

/// `execve(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, args: Strings, given: Strings) -> c_int {
    // SAFETY: **Caller**.
    let run = |given| unsafe { next::execve.get()(path, args, given) };
    // SAFETY: **Caller**.
    unsafe { become_program(path, given, run) }
}

/// `execv(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, args: Strings) -> c_int {
    // SAFETY: **Caller**.
    unsafe { execve(path, args, own_environment()) }
}

/// `fexecve(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(number: c_int, args: Strings, given: Strings) -> c_int {
    // SAFETY: **Caller**.
    let run = |given| unsafe { next::fexecve.get()(number, args, given) };
    let path = CString::new(format!("/proc/self/fd/{number}")).unwrap_or_default();
    // SAFETY: **Caller**.
    unsafe { become_program(path.as_ptr(), given, run) }
}

/// `execvpe(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, args: Strings, given: Strings) -> c_int {
    // SAFETY: **Caller**.
    let run = |given| unsafe { next::execvpe.get()(file, args, given) };
    // SAFETY: **Caller**.
    let path = (!file.is_null()).then(|| found(unsafe { CStr::from_ptr(file) }));
    let path = path.unwrap_or_default();
    // SAFETY: **Caller**.
    unsafe { become_program(path.as_ptr(), given, run) }
}

/// `execvp(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, args: Strings) -> c_int {
    // SAFETY: **Caller**.
    unsafe { execvpe(file, args, own_environment()) }
}

/// Where a program of this name is, as execvp(3) looks for it.
pub fn found(file: &CStr) -> CString {
    let name = OsStr::from_bytes(file.to_bytes());
    if name.as_bytes().contains(&b'/') {
        return file.into();
    }
    let all = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let there = env::split_paths(&all).map(|folder| folder.join(name));
    let first = there
        .chain(iter::once(Path::new(name).into()))
        .find(|path| path.is_file());
    let first = first.unwrap_or_default();
    CString::new(first.as_os_str().as_bytes()).unwrap_or_default()
}
