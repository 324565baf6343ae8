//! The first instructions: from 32-bit protected mode to Rust in the upper half.
//!
//! A PVH loader enters at `pvh_start` with paging off and the physical address of its
//! start information in `ebx` (the note below tells it where). A loader that follows
//! `e_entry` arrives in 64-bit mode at `long_start` with boot parameters in `rsi`. Other
//! CPUs come in real mode through a page that [`prepare_trampoline`] writes.
//!
//! The boot tables map the first 4 GiB three times with 2 MiB pages: where they are, at
//! the direct map, and (1 GiB of it) where the kernel's image is linked. The fourth
//! gigabyte, where devices live, is not cached. They are all writable and executable;
//! `mach` replaces them, and only the code here runs on them afterwards.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{DIRECT_MAP, IMAGE_OFFSET, TRAMPOLINE};

const CR0: u32 = 0x8001_0033;
/// PAE, MCE, PGE, OSFXSR, OSXMMEXCPT.
const CR4: u32 = 0x6e0;
const EFER: u32 = 0xc000_0080;
/// SCE, LME, NXE.
const EFER_BITS: u32 = 0x901;
/// Present, writable, 2 MiB.
const LARGE: u32 = 0x83;
const UNCACHED: u32 = 0x18;
const BOOT_STACK_BYTES: usize = 32 << 10;

/// How the kernel was entered, as the entry code tells the Rust code.
pub mod door {
    /// By the PVH note.
    pub const PVH: u64 = 0;
    /// By `e_entry` in 64-bit mode.
    pub const LONG: u64 = 1;
}

global_asm!(
    // The note that makes an ELF file a PVH kernel (XEN_ELFNOTE_PHYS32_ENTRY = 18).
    ".pushsection .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 4, 18",
    ".asciz \"Xen\"",
    ".long pvh_start - {offset}",
    ".popsection",

    ".pushsection .boot, \"awx\"",
    ".code32",
    ".global pvh_start",
    "pvh_start:",
    "cld",
    "cli",
    "mov esi, ebx",
    "xor edi, edi",
    "mov ebp, offset boot_main - {offset}",
    // Page directories: 2048 entries of 2 MiB, the last 512 uncached.
    "mov ebx, offset boot_directories - {offset}",
    "mov eax, {large}",
    "2:",
    "mov [ebx], eax",
    "mov dword ptr [ebx + 4], 0",
    "cmp ebx, offset boot_directories - {offset} + 3 * 4096",
    "jb 3f",
    "or dword ptr [ebx], {uncached}",
    "3:",
    "add ebx, 8",
    "add eax, 0x200000",
    "cmp ebx, offset boot_directories - {offset} + 4 * 4096",
    "jb 2b",
    "jmp enter_long_mode",

    // Another CPU, from the trampoline: 32-bit, flat segments, paging off.
    "ap_start:",
    "xor edi, edi",
    "xor esi, esi",
    "mov ebp, offset boot_ap - {offset}",

    "enter_long_mode:",
    "mov eax, {cr4}",
    "mov cr4, eax",
    "mov eax, offset boot_root - {offset}",
    "mov cr3, eax",
    "mov ecx, {efer}",
    "rdmsr",
    "or eax, {efer_bits}",
    "wrmsr",
    "mov eax, {cr0}",
    "mov cr0, eax",
    "lgdt [boot_gdt_pointer - {offset}]",
    // A far return, because the assembler has no far jump with a 32-bit target in both
    // dialects; the stack is only needed for it.
    "mov esp, offset boot_scratch - {offset} + 64",
    "push 8",
    "push ebp",
    "retf",

    ".code64",
    // The second door: 64-bit mode, low addresses mapped. Builds the same tables.
    ".global long_start",
    "long_start:",
    "cld",
    "cli",
    "mov edi, 1",
    "lea rbx, [rip + boot_directories]",
    "mov eax, {large}",
    "4:",
    "mov [rbx], rax",
    "add rbx, 8",
    "add rax, 0x200000",
    "lea rcx, [rip + boot_directories + 4 * 4096]",
    "cmp rbx, rcx",
    "jb 4b",
    "lea rbx, [rip + boot_directories + 3 * 4096]",
    "5:",
    "or qword ptr [rbx], {uncached}",
    "add rbx, 8",
    "cmp rbx, rcx",
    "jb 5b",
    "mov eax, {cr4}",
    "mov cr4, rax",
    "mov ecx, {efer}",
    "rdmsr",
    "or eax, {efer_bits}",
    "wrmsr",
    "mov eax, {cr0}",
    "mov cr0, rax",
    "lea rax, [rip + boot_root]",
    "mov cr3, rax",

    "boot_main:",
    "mov rsp, offset boot_stack_top",
    "mov rax, offset boot_main_high",
    "jmp rax",
    "boot_main_high:",
    "xor ebp, ebp",
    "call mach_start",
    "ud2",

    "boot_ap:",
    "mov rax, offset boot_ap_high",
    "jmp rax",
    // The final tables do not map this section, so the tables change in the text proper.
    ".pushsection .text, \"ax\"",
    "boot_ap_high:",
    "mov rax, [{ap_root}]",
    "mov cr3, rax",
    // One CPU takes the stack; one that comes too late finds none and stops.
    "xor eax, eax",
    "xchg rax, [{ap_stack}]",
    "mov rsp, rax",
    "test rax, rax",
    "jz 7f",
    "xor ebp, ebp",
    "call mach_start_ap",
    "7: cli",
    "hlt",
    "jmp 7b",
    ".popsection",

    // What every other CPU runs first, in real mode, copied to the trampoline page.
    ".code16",
    ".balign 8",
    "trampoline_start:",
    "jmp 6f",
    ".balign 8",
    ".word 31",
    ".long boot_gdt - {offset}",
    "6:",
    "cli",
    "cld",
    "xor ax, ax",
    "mov ds, ax",
    "lgdt [{trampoline} + 8]",
    "mov eax, cr0",
    "or al, 1",
    "mov cr0, eax",
    ".byte 0x66, 0xea",
    ".long {trampoline} + trampoline_32 - trampoline_start",
    ".word 0x10",
    ".code32",
    "trampoline_32:",
    "mov ax, 0x18",
    "mov ds, ax",
    "mov es, ax",
    "mov ss, ax",
    "mov eax, offset ap_start - {offset}",
    "jmp eax",
    "trampoline_end:",
    ".code64",

    ".balign 8",
    "boot_gdt:",
    ".quad 0",
    ".quad 0x00af9b000000ffff",
    ".quad 0x00cf9b000000ffff",
    ".quad 0x00cf93000000ffff",
    "boot_gdt_pointer:",
    ".word 31",
    ".quad boot_gdt - {offset}",
    ".balign 8",
    "boot_scratch:",
    ".skip 64",

    ".balign 4096",
    ".global boot_root",
    "boot_root:",
    ".quad boot_low - {offset} + 3",
    ".skip 255 * 8",
    ".quad boot_low - {offset} + 3",
    ".skip 254 * 8",
    ".quad boot_high - {offset} + 3",
    "boot_low:",
    ".quad boot_directories - {offset} + 3",
    ".quad boot_directories - {offset} + 4096 + 3",
    ".quad boot_directories - {offset} + 8192 + 3",
    ".quad boot_directories - {offset} + 12288 + 3",
    ".skip 508 * 8",
    "boot_high:",
    ".skip 510 * 8",
    ".quad boot_directories - {offset} + 3",
    ".quad 0",
    ".popsection",

    ".pushsection .bss.boot, \"aw\", @nobits",
    ".balign 4096",
    "boot_directories:",
    ".skip 4 * 4096",
    ".global boot_stack_bottom",
    "boot_stack_bottom:",
    ".skip {stack}",
    ".global boot_stack_top",
    "boot_stack_top:",
    ".popsection",
    offset = const IMAGE_OFFSET,
    trampoline = const TRAMPOLINE,
    large = const LARGE,
    uncached = const UNCACHED,
    cr0 = const CR0,
    cr4 = const CR4,
    efer = const EFER,
    efer_bits = const EFER_BITS,
    stack = const BOOT_STACK_BYTES,
    ap_root = sym AP_ROOT,
    ap_stack = sym AP_STACK,
);

static AP_ROOT: AtomicU64 = AtomicU64::new(0);
static AP_STACK: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static boot_stack_top: u8;
}

/// Copies the code that starts other CPUs to its page, and names the stack and the page
/// tables that the next one gets. These are the caller's tables.
///
/// # Safety
/// The page at [`TRAMPOLINE`] is mapped in the direct map and nobody uses it; the CPU that
/// was started before is done with its first instructions.
pub unsafe fn prepare_trampoline(stack_top: u64) {
    // The low bits may be a tag, which means nothing before the new CPU's features are on.
    AP_ROOT.store(crate::instr::read_cr3() & !0xfff, Ordering::Release);
    AP_STACK.store(stack_top, Ordering::Release);
    let to = (DIRECT_MAP + TRAMPOLINE) as *mut u8;
    let from = &raw const trampoline_start;
    // SAFETY: the code lies between the two symbols and is shorter than a page. It is read
    // through the direct map, because the final tables do not map it where it is linked.
    unsafe {
        let bytes = (&raw const trampoline_end).offset_from_unsigned(from);
        let from = (from as u64 - IMAGE_OFFSET + DIRECT_MAP) as *const u8;
        to.copy_from_nonoverlapping(from, bytes);
    }
}

/// Top of the stack that the first CPU boots on.
pub fn stack_top() -> u64 {
    &raw const boot_stack_top as u64
}
