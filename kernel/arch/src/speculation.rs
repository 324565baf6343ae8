//! The instructions that keep speculation apart: barriers, the return stack, VERW.
//!
//! VERW must be the last thing before a program runs, after the kernel's last load of
//! anything secret. On processors that need none of it, nothing of it is on the way: the two
//! exits to user mode end in instructions that are as long as a jump or longer, and
//! [`clear_buffers_on_exit`] writes jumps over them, to copies that begin with VERW.

use core::arch::naked_asm;

use crate::msr;
use crate::tables::KERNEL_DATA;

/// What VERW looks at; the buffers are cleared whatever it finds. A constant, which
/// assembler finds by this name.
static SELECTOR: u16 = KERNEL_DATA;

const JUMP: u8 = 0xe9;
const JUMP_BYTES: usize = 5;

/// SYSRET to the program, its stack pointer loaded already.
#[unsafe(naked)]
unsafe extern "C" fn clear_and_sysret() {
    naked_asm!("verw word ptr [rip + {selector}]", "swapgs", "sysretq", selector = sym SELECTOR)
}

/// IRETQ to the program, its registers loaded already.
#[unsafe(naked)]
unsafe extern "C" fn clear_and_iret() {
    naked_asm!("verw word ptr [rip + {selector}]", "swapgs", "iretq", selector = sym SELECTOR)
}

/// Makes both ways back to user mode clear the processor's buffers.
///
/// # Safety
/// Called once at boot, while the kernel's text can be written and no other CPU runs.
pub unsafe fn clear_buffers_on_exit() {
    unsafe extern "C" {
        static __verw_sysret_start: u64;
        static __verw_sysret_end: u64;
        static __verw_iret_start: u64;
        static __verw_iret_end: u64;
    }
    // SAFETY: the linker script places the lists between the symbols; each entry names an exit
    // whose instructions take at least the bytes of a jump.
    unsafe {
        patch(
            &raw const __verw_sysret_start,
            &raw const __verw_sysret_end,
            clear_and_sysret,
        );
        patch(
            &raw const __verw_iret_start,
            &raw const __verw_iret_end,
            clear_and_iret,
        );
    }
}

/// Writes a jump to `to` over each site of a list.
///
/// # Safety
/// Each entry from `start` to `end` names text of at least five bytes that can be written.
unsafe fn patch(start: *const u64, end: *const u64, to: unsafe extern "C" fn()) {
    // SAFETY: the caller vouches for the list.
    let sites = unsafe { core::slice::from_raw_parts(start, end.offset_from_unsigned(start)) };
    for &site in sites {
        let next = site.wrapping_add(JUMP_BYTES as u64);
        let distance = (to as *const () as u64).wrapping_sub(next) as u32;
        let mut jump = [JUMP; JUMP_BYTES];
        jump[1..].copy_from_slice(&distance.to_le_bytes());
        // SAFETY: the caller vouches for the site.
        unsafe { (site as *mut [u8; JUMP_BYTES]).write_unaligned(jump) };
    }
}

/// Makes indirect branches forget what they were taught (IBPB).
///
/// # Safety
/// CPUID offers the barrier.
#[inline]
pub unsafe fn forget_branches() {
    // SAFETY: the caller has asked CPUID.
    unsafe { msr::write(msr::PRED_CMD, 1) }
}

/// Fills the return stack with harmless places, so that no return of the next program's, or
/// the kernel's for it, goes where the last one's calls came from.
#[inline]
pub fn fill_return_stack() {
    // SAFETY: each call pushes one word, and all of them are taken off again; the places that
    // are called are reached by speculation only, and stop there.
    unsafe {
        core::arch::asm!(
            "mov {count:e}, 16",
            "2:",
            "call 3f",
            "4: pause",
            "lfence",
            "jmp 4b",
            "3:",
            "call 5f",
            "6: pause",
            "lfence",
            "jmp 6b",
            "5:",
            "add rsp, 16",
            "dec {count:e}",
            "jnz 2b",
            count = out(reg) _,
        );
    }
}
