//! Faults that the kernel expects: code that touches user memory says where to go on.
//!
//! An instruction that may fault is entered into the section `.fixups` as a pair
//! (address of the instruction, address to continue at). A page fault or general
//! protection fault in kernel mode at the first continues at the second, with the
//! faulting address in `rax`, or `u64::MAX` if it was no page fault. Faults anywhere else are bugs of the kernel.
//! Every other register is as it was.

/// One line of the table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Fixup {
    /// The instruction that may fault.
    pub from: u64,
    /// Where to continue.
    pub to: u64,
}

#[cfg(target_os = "none")]
unsafe extern "C" {
    static __fixups_start: Fixup;
    static __fixups_end: Fixup;
}

/// Where to continue after a fault at `rip`, if it was expected.
///
/// The table has a handful of lines, so it is searched in order.
#[cfg(target_os = "none")]
pub fn landing(rip: u64) -> Option<u64> {
    let start = &raw const __fixups_start;
    let end = &raw const __fixups_end;
    // SAFETY: the linker script places the table between the two symbols.
    let table = unsafe { core::slice::from_raw_parts(start, end.offset_from_unsigned(start)) };
    table
        .iter()
        .find(|fixup| fixup.from == rip)
        .map(|fixup| fixup.to)
}

const CLAC: [u8; 3] = [0x0f, 0x01, 0xca];

/// Turns the no-ops listed in `.smap_clac` into CLAC: a program may enter the kernel with
/// AC set, which would let the kernel touch user pages.
///
/// # Safety
/// Called once at boot, while the kernel's text can be written and no other CPU runs.
#[cfg(target_os = "none")]
pub unsafe fn enable_smap_sites(smap: bool) {
    unsafe extern "C" {
        static __smap_clac_start: u64;
        static __smap_clac_end: u64;
    }
    if !smap {
        return;
    }
    let start = &raw const __smap_clac_start;
    let end = &raw const __smap_clac_end;
    // SAFETY: the linker script places the list between the symbols; each entry names three
    // bytes of text.
    unsafe {
        for &site in core::slice::from_raw_parts(start, end.offset_from_unsigned(start)) {
            (site as *mut [u8; 3]).write_unaligned(CLAC);
        }
    }
}
