//! Who called: return addresses, found with the C compiler's unwinder.

use core::ffi::{CStr, c_int, c_void};

use crate::report::Line;
use crate::settings;

/// Frames that are kept.
const FRAMES: usize = 15;
/// Frames of this library on top of each stack, at most.
const OURS: usize = 8;

/// Return addresses, the newest first.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Stack {
    thread: i32,
    frames: [usize; FRAMES],
}

#[repr(C)]
struct Walk {
    stack: Stack,
    found: usize,
    wanted: usize,
    skipped: usize,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut Walk) -> c_int,
        walk: *mut Walk,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// The unwinder's codes for "go on" and "enough".
const CONTINUE: c_int = 0;
const STOP: c_int = 4;

extern "C" fn each(context: *mut c_void, walk: *mut Walk) -> c_int {
    // SAFETY: `capture` passes its own walk; the context is the unwinder's.
    let (walk, address) = unsafe { (&mut *walk, _Unwind_GetIP(context)) };
    if walk.found == 0 && walk.skipped < OURS && is_ours(address) {
        walk.skipped += 1;
        return CONTINUE;
    }
    let Some(slot) = walk.stack.frames[..walk.wanted].get_mut(walk.found) else {
        return STOP;
    };
    *slot = address;
    walk.found += 1;
    CONTINUE
}

fn locate(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: zeros are valid, and the function fills the structure.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        (libc::dladdr(core::ptr::without_provenance(address), &mut info) != 0).then_some(info)
    }
}

fn is_ours(address: usize) -> bool {
    let base = |address| locate(address).map(|info| info.dli_fbase.addr());
    base(address) == base((each as extern "C" fn(*mut c_void, *mut Walk) -> c_int) as usize)
}

impl Stack {
    /// No stack.
    pub const fn none() -> Self {
        Self {
            thread: 0,
            frames: [0; FRAMES],
        }
    }

    /// The caller's stack, if `audit` is on.
    pub fn capture() -> Self {
        let wanted = settings::debug().frames.min(FRAMES);
        // SAFETY: asks for the thread's number.
        let thread = unsafe { libc::gettid() };
        let mut walk = Walk {
            stack: Self {
                thread,
                ..Self::none()
            },
            found: 0,
            wanted,
            skipped: 0,
        };
        if wanted > 0 {
            // SAFETY: `each` has the type that the unwinder calls.
            unsafe { _Unwind_Backtrace(each, &mut walk) };
        }
        walk.stack
    }

    /// Writes the stack to standard error.
    pub fn print(&self, title: &str) {
        if self.frames[0] == 0 {
            return;
        }
        Line::new()
            .text("  ")
            .text(title)
            .text(" thread ")
            .number(self.thread as usize, 10)
            .text(":\n")
            .write();
        for &address in self.frames.iter().take_while(|&&address| address != 0) {
            print_frame(address);
        }
    }
}

fn print_frame(address: usize) {
    let line = Line::new().text("    ");
    let Some(info) = locate(address) else {
        return line.address(address).text("\n").write();
    };
    let (name, start) = match info.dli_sname.is_null() {
        true => ("", info.dli_fbase.addr()),
        false => (c_text(info.dli_sname), info.dli_saddr.addr()),
    };
    line.text(c_text(info.dli_fname))
        .text("'")
        .text(name)
        .text("+")
        .address(address - start)
        .text("\n")
        .write();
}

fn c_text(text: *const libc::c_char) -> &'static str {
    if text.is_null() {
        return "?";
    }
    // SAFETY: the dynamic linker's names live as long as their libraries.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}
