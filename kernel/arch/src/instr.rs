//! Single instructions that the compiler has no word for.

use core::arch::{asm, naked_asm};

/// Writes a byte to an I/O port.
///
/// # Safety
/// The port's device must not reach memory that Rust owns.
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller vouches for the port.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    }
}

/// Writes a word to an I/O port.
///
/// # Safety
/// As for [`out8`].
pub unsafe fn out16(port: u16, value: u16) {
    // SAFETY: the caller vouches for the port.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags))
    }
}

/// Writes a double word to an I/O port.
///
/// # Safety
/// As for [`out8`].
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: the caller vouches for the port.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
    }
}

/// Reads a byte from an I/O port.
///
/// # Safety
/// Reading must not change state that somebody else relies on.
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Reads a word from an I/O port.
///
/// # Safety
/// As for [`in8`].
pub unsafe fn in16(port: u16) -> u16 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe {
        asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Reads a double word from an I/O port.
///
/// # Safety
/// As for [`in8`].
pub unsafe fn in32(port: u16) -> u32 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe {
        asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// The time-stamp counter, not ordered against other instructions.
#[inline(always)]
pub fn rdtsc() -> u64 {
    // SAFETY: reading the counter has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Waits for one interrupt: opens interrupts, halts, closes them again.
///
/// `sti` holds interrupts back for one more instruction, so none can be taken between
/// the caller's last check and the `hlt`.
///
/// # Safety
/// The IDT is loaded, and no state that a handler touches is half changed.
pub unsafe fn enable_and_halt() {
    // SAFETY: the caller vouches for what handlers find; the function keeps all registers.
    unsafe { sti_hlt_cli() }
}

/// One place for the three instructions, so that an NMI handler knows where it came between.
#[unsafe(naked)]
unsafe extern "C" fn sti_hlt_cli() {
    naked_asm!("sti", "hlt", "cli", "ret")
}

/// The address of the `hlt` in [`enable_and_halt`].
pub fn halt_address() -> u64 {
    sti_hlt_cli as *const () as u64 + STI_BYTES
}

/// The address behind that `hlt`: what interrupts a halted CPU returns to.
pub fn after_halt() -> u64 {
    halt_address() + HLT_BYTES
}

const STI_BYTES: u64 = 1;
const HLT_BYTES: u64 = 1;

/// Serves the interrupts that are pending without halting.
///
/// # Safety
/// As for [`enable_and_halt`].
pub unsafe fn enable_briefly() {
    // SAFETY: the caller vouches for what handlers find.
    unsafe { asm!("sti", "nop", "cli", options(nostack)) }
}

/// Stops this CPU for good.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: with interrupts closed nothing is changed by halting.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}

/// The address whose access faulted last.
pub fn read_cr2() -> u64 {
    let value;
    // SAFETY: a read of CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// The page-table root and its flags.
pub fn read_cr3() -> u64 {
    let value;
    // SAFETY: a read of CR3 has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Loads the page-table root.
///
/// # Safety
/// The tables map the kernel as the running code expects.
pub unsafe fn write_cr3(value: u64) {
    // SAFETY: the caller vouches for the tables.
    unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Holds back interrupts whose vector's upper half is `class` at most, while interrupts are open; 0 holds back none.
pub fn hold_back_interrupts(class: u64) {
    // SAFETY: by itself this only delays interrupts; classes are 0 to 15, other bits are reserved.
    unsafe { asm!("mov cr8, {}", in(reg) class & 0xf, options(nomem, nostack, preserves_flags)) }
}

/// The class that is held back, 0 if none is.
pub fn held_back_interrupts() -> u64 {
    let class;
    // SAFETY: a read of CR8 has no effect.
    unsafe { asm!("mov {}, cr8", out(reg) class, options(nomem, nostack, preserves_flags)) }
    class
}

/// The feature switches.
pub fn read_cr4() -> u64 {
    let value;
    // SAFETY: a read of CR4 has no effect.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Sets the feature switches.
///
/// # Safety
/// The processor has each feature, and the kernel expects it.
pub unsafe fn write_cr4(value: u64) {
    // SAFETY: the caller vouches for the features.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Drops this CPU's translation of one page.
pub fn invlpg(address: u64) {
    // SAFETY: forgetting a translation changes no memory.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// This function's frame pointer.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let value;
    // SAFETY: a register is read.
    unsafe { asm!("mov {}, rbp", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}
