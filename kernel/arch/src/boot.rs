//! The first instructions: from 32-bit protected mode to Rust in the upper half.
//!
//! A PVH loader enters at `pvh_start` with paging off and the physical address of its
//! start information in `ebx` (the note below tells it where). A multiboot2 loader (GRUB,
//! from BIOS or UEFI) finds its header and enters at `multiboot2_start`, likewise. A loader that
//! follows `e_entry` arrives in 64-bit mode at `long_start` with boot parameters in `rsi`.
//! Other CPUs come in real mode through a page that [`prepare_trampoline`] writes.
//!
//! The section `.boot` is linked where it is loaded, below 2 GiB, for that is where its code
//! runs: so GRUB, which looks for `e_entry` among linked addresses, finds it. All other
//! sections run `IMAGE_OFFSET` higher.
//!
//! The boot tables map the first 4 GiB three times with 2 MiB pages: where they are, at
//! the direct map, and (1 GiB of it) where the kernel's image is linked. The fourth
//! gigabyte, where devices live, is not cached. They are all writable and executable;
//! `mach` replaces them, and only the code here runs on them afterwards.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{DIRECT_MAP, IMAGE_OFFSET};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BootProtocol {
    /// By the PVH note.
    Pvh,
    /// By `e_entry` in 64-bit mode.
    Long,
    /// By a multiboot2 header.
    Multiboot2,
}

impl BootProtocol {
    /// The protocol that the entry code numbers so.
    pub const fn of(number: u64) -> Self {
        match number {
            0 => Self::Pvh,
            1 => Self::Long,
            _ => Self::Multiboot2,
        }
    }
}

/// Multiboot2 specification, sections 3.1.1 and 3.3.
const MULTIBOOT2_HEADER: u32 = 0xe852_50d6;
const MULTIBOOT2_LOADER: u32 = 0x36d7_6289;
const MULTIBOOT2_HEADER_BYTES: u32 = 16 + 16 + 8 + 8;
/// Makes the header's first four words add up to zero.
const MULTIBOOT2_CHECKSUM: u32 = (MULTIBOOT2_HEADER + MULTIBOOT2_HEADER_BYTES).wrapping_neg();

global_asm!(
    // The note that makes an ELF file a PVH kernel (XEN_ELFNOTE_PHYS32_ENTRY = 18).
    ".pushsection .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 4, 18",
    ".asciz \"Xen\"",
    ".long pvh_start",
    ".popsection",

    // Within the file's first 32 KiB. After 16 bytes, tags: where to enter (3), modules at
    // pages (6), the end. Without the tag 7, GRUB leaves UEFI's boot services.
    ".pushsection .multiboot2, \"a\"",
    ".balign 8",
    ".long {header}, 0, {header_bytes}, {checksum}",
    ".short 3, 0",
    ".long 12, multiboot2_start, 0",
    ".short 6, 0",
    ".long 8",
    ".short 0, 0",
    ".long 8",
    ".popsection",

    ".pushsection .boot, \"awx\"",
    ".code32",
    "multiboot2_start:",
    "cld",
    "cli",
    "cmp eax, {loader}",
    "jne stop",
    "mov edi, 2",
    "jmp build_tables",
    "stop:",
    "hlt",
    "jmp stop",

    ".global pvh_start",
    "pvh_start:",
    "cld",
    "cli",
    "xor edi, edi",
    "build_tables:",
    "mov esi, ebx",
    "mov ebp, offset boot_main",
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
    "mov ax, 0x18",
    "mov ds, ax",
    "mov es, ax",
    "mov ss, ax",
    "xor edi, edi",
    "xor esi, esi",
    "mov ebp, offset boot_ap",

    "enter_long_mode:",
    "mov eax, {cr4}",
    "mov cr4, eax",
    "mov eax, offset boot_root",
    "mov cr3, eax",
    "mov ecx, {efer}",
    "rdmsr",
    "or eax, {efer_bits}",
    "wrmsr",
    "mov eax, {cr0}",
    "mov cr0, eax",
    "lgdt [boot_gdt_pointer]",
    // A far return, because the assembler has no far jump with a 32-bit target in both
    // dialects; the stack is only needed for it.
    "mov esp, offset boot_scratch + 64",
    "push 8",
    "push ebp",
    "retf",

    ".code64",
    // The second entry: 64-bit mode, low addresses mapped. Builds the same tables.
    ".global long_start",
    "long_start:",
    "cld",
    "cli",
    "mov edi, 1",
    "mov ebx, offset boot_directories - {offset}",
    "mov eax, {large}",
    "4:",
    "mov [rbx], rax",
    "add rbx, 8",
    "add rax, 0x200000",
    "mov ecx, offset boot_directories - {offset} + 4 * 4096",
    "cmp rbx, rcx",
    "jb 4b",
    "mov ebx, offset boot_directories - {offset} + 3 * 4096",
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

    "boot_ap:",
    "mov rax, offset boot_ap_high",
    "jmp rax",

    ".pushsection .text, \"ax\"",
    "boot_main_high:",
    "xor ebp, ebp",
    "call mach_start",
    "ud2",
    // The final tables do not map the section above, so the tables change here.
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

    // What every other CPU runs first, in real mode, copied to some page: the startup
    // interrupt leaves its address in CS.
    ".code16",
    ".balign 8",
    "trampoline_start:",
    "jmp 6f",
    ".balign 8",
    ".word 31",
    ".long boot_gdt",
    "6:",
    "cli",
    "cld",
    "lgdt cs:[8]",
    "mov eax, cr0",
    "or al, 1",
    "mov cr0, eax",
    ".byte 0x66, 0xea",
    ".long ap_start",
    ".word 0x10",
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
    ".quad boot_gdt",
    ".balign 8",
    "boot_scratch:",
    ".skip 64",

    ".balign 4096",
    ".global boot_root",
    "boot_root:",
    ".quad boot_low + 3",
    ".skip 255 * 8",
    ".quad boot_low + 3",
    ".skip 254 * 8",
    ".quad boot_high + 3",
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
    header = const MULTIBOOT2_HEADER,
    header_bytes = const MULTIBOOT2_HEADER_BYTES,
    checksum = const MULTIBOOT2_CHECKSUM,
    loader = const MULTIBOOT2_LOADER,
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

/// Where the CPU that starts finds its tables: it has nothing but this address yet.
static AP_ROOT: AtomicU64 = AtomicU64::new(0);
/// Its stack, likewise.
static AP_STACK: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static boot_stack_top: u8;
}

/// Copies the code that starts other CPUs to the page at `page`, and names the stack and the
/// page tables that the next one gets. These are the caller's tables.
///
/// # Safety
/// The page lies below 1 MiB, is mapped in the direct map, and nobody uses it; the CPU that
/// was started before is done with its first instructions.
pub unsafe fn prepare_trampoline(page: u64, stack_top: u64) {
    // The low bits may be a tag, which means nothing before the new CPU's features are on.
    AP_ROOT.store(crate::instr::read_cr3() & !0xfff, Ordering::Release);
    AP_STACK.store(stack_top, Ordering::Release);
    let to = (DIRECT_MAP + page) as *mut u8;
    let from = &raw const trampoline_start;
    // SAFETY: the code lies between the two symbols and is shorter than a page. It is read
    // through the direct map, because the final tables do not map it where it is linked.
    unsafe {
        let bytes = (&raw const trampoline_end).offset_from_unsigned(from);
        let from = (from as u64 + DIRECT_MAP) as *const u8;
        to.copy_from_nonoverlapping(from, bytes);
    }
}

/// Top of the stack that the first CPU boots on.
pub fn stack_top() -> u64 {
    &raw const boot_stack_top as u64
}
