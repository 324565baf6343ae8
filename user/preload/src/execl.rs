//! execl, execlp and execle, whose arguments are not a list but those of the call.
//!
//! Five of them are in registers and the rest on the stack (System V ABI, x86-64, "Parameter Passing"). Pushed before
//! those, in their order, they are the list that execv wants. It returns only if it fails.

use std::arch::naked_asm;
use std::ffi::{c_char, c_int};

use crate::exec::{Strings, execv, execve, execvp};

macro_rules! with_list {
    ($(#[$doc:meta])* $name:ident => $to:path) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// **Caller**.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            naked_asm!(
                "pop r10",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                // The stack is aligned as a call wants it.
                "push r10",
                "call {to}",
                "pop r10",
                "add rsp, 40",
                "push r10",
                "ret",
                to = sym $to,
            )
        }
    };
}

with_list! {
    /// `execl(3)`.
    execl => execv
}

with_list! {
    /// `execlp(3)`.
    execlp => execvp
}

with_list! {
    /// `execle(3)`.
    execle => with_environment
}

/// The environment stands behind the null that ends the list.
///
/// # Safety
/// **Caller**.
unsafe extern "C" fn with_environment(path: *const c_char, args: Strings) -> c_int {
    let mut end = 0;
    // SAFETY: **Caller**: the list ends.
    while !unsafe { *args.add(end) }.is_null() {
        end += 1;
    }
    // SAFETY: **Caller**: the environment is the argument behind it.
    unsafe { execve(path, args, (*args.add(end + 1)).cast()) }
}
