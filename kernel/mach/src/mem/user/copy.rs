//! Copies that may fault between two bytes: they stop there and say where.
//!
//! From [`LARGE`] bytes on they borrow vector registers, as `memcpy` does, which hold the
//! program's values and are put back however the copy ends.

use core::arch::naked_asm;

use base::VirtAddr;

use super::Fault;
use crate::mem::string::LARGE;

/// How a copy ended: where it faulted, and how many bytes were left; 0 left is success.
#[repr(C)]
pub(super) struct Ended {
    fault: u64,
    left: usize,
}

impl Ended {
    #[inline(always)]
    pub(super) fn result(self, len: usize) -> Result<(), Fault> {
        if self.left == 0 {
            return Ok(());
        }
        Err(Fault {
            addr: VirtAddr(self.fault),
            done: len - self.left,
        })
    }
}

/// A copy whose loads (`$load` = 1) or stores (`$load` = 0) may fault.
macro_rules! copy_function {
    ($name:ident, $load:literal, $doc:literal) => {
        #[doc = $doc]
        ///
        /// # Safety
        /// The user range was checked; the kernel's range is valid and not overlapping.
        #[unsafe(naked)]
        pub(super) unsafe extern "sysv64" fn $name(
            to: *mut u8,
            from: *const u8,
            len: usize,
        ) -> Ended {
            naked_asm!(
                // One move by `by` through `reg` at `offset`, entered in the table of fixups:
                // after a fault it goes on at `end`.
                ".macro move_by by, reg, offset, end",
                concat!(".if ", $load),
                "77: \\by \\reg, [rsi + \\offset]",
                "\\by [rdi + \\offset], \\reg",
                ".else",
                "\\by \\reg, [rsi + \\offset]",
                "77: \\by [rdi + \\offset], \\reg",
                ".endif",
                ".pushsection .fixups, \"a\"",
                ".quad 77b, \\end",
                ".popsection",
                ".endm",
                ".macro move_word reg, offset",
                "move_by mov, \\reg, \\offset, 99f",
                ".endm",
                ".macro move_64_wide offset",
                "move_by movups, xmm0, \\offset, 98f",
                "move_by movups, xmm1, \\offset + 16, 98f",
                "move_by movups, xmm2, \\offset + 32, 98f",
                "move_by movups, xmm3, \\offset + 48, 98f",
                ".endm",
                ".macro put_vectors_back",
                "movups xmm0, [rsp]",
                "movups xmm1, [rsp + 16]",
                "movups xmm2, [rsp + 32]",
                "movups xmm3, [rsp + 48]",
                "add rsp, 64",
                ".endm",
                "cmp rdx, 64",
                "jae 2f",
                // Up to 63 bytes, by words that overlap in the middle; in order, so that a
                // fault is at the first byte that is not there. `rdx` stays until the end.
                "3: cmp edx, 16",
                "ja 5f",
                "cmp edx, 8",
                "jb 6f",
                "move_word rcx, 0",
                "move_word r8, rdx - 8",
                "xor edx, edx",
                "ret",
                "5: cmp edx, 32",
                "ja 4f",
                "move_word rcx, 0",
                "move_word r8, 8",
                "move_word r9, rdx - 16",
                "move_word r10, rdx - 8",
                "xor edx, edx",
                "ret",
                "4: move_word rcx, 0",
                "move_word r8, 8",
                "move_word r9, 16",
                "move_word r10, 24",
                "move_word rcx, rdx - 32",
                "move_word r8, rdx - 24",
                "move_word r9, rdx - 16",
                "move_word r10, rdx - 8",
                "xor edx, edx",
                "ret",
                "6: cmp edx, 4",
                "jb 6f",
                "move_word ecx, 0",
                "move_word r8d, rdx - 4",
                "xor edx, edx",
                "ret",
                "5: move_word cl, 0",
                "inc rsi",
                "inc rdi",
                "dec edx",
                "6: test edx, edx",
                "jnz 5b",
                // The fault's address is in rax, what is left in rdx: the words of `Ended`.
                "99: ret",
                "2: cmp rdx, {large}",
                "jb 7f",
                "sub rsp, 64",
                "movups [rsp], xmm0",
                "movups [rsp + 16], xmm1",
                "movups [rsp + 32], xmm2",
                "movups [rsp + 48], xmm3",
                "8: move_64_wide 0",
                "move_64_wide 64",
                "move_64_wide 128",
                "move_64_wide 192",
                "add rsi, 256",
                "add rdi, 256",
                "sub rdx, 256",
                "cmp rdx, 256",
                "jae 8b",
                "put_vectors_back",
                "cmp rdx, 64",
                "jb 9f",
                "7: move_word rcx, 0",
                "move_word r8, 8",
                "move_word r9, 16",
                "move_word r10, 24",
                "move_word rcx, 32",
                "move_word r8, 40",
                "move_word r9, 48",
                "move_word r10, 56",
                "add rsi, 64",
                "add rdi, 64",
                "sub rdx, 64",
                "cmp rdx, 64",
                "jae 7b",
                "9: test edx, edx",
                "jnz 3b",
                "99: ret",
                // Word by word up to the same fault, so that few bytes less are reported.
                "98: put_vectors_back",
                "jmp 7b",
                ".purgem put_vectors_back",
                ".purgem move_64_wide",
                ".purgem move_word",
                ".purgem move_by",
                large = const LARGE,
            )
        }
    };
}

copy_function!(copy_loads, 1, "Copies from a program.");
copy_function!(copy_stores, 0, "Copies to a program.");

/// Writes `len` copies of `byte` to a program.
///
/// # Safety
/// The range was checked.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn fill_stores(to: *mut u8, byte: u64, len: usize) -> Ended {
    naked_asm!(
        ".macro store_word reg",
        "77: mov [rdi], \\reg",
        ".pushsection .fixups, \"a\"",
        ".quad 77b, 99f",
        ".popsection",
        ".endm",
        "3: cmp rdx, 8",
        "jb 5f",
        "4: store_word rsi",
        "add rdi, 8",
        "sub rdx, 8",
        "cmp rdx, 8",
        "jae 4b",
        "5: test edx, edx",
        "jz 99f",
        "6: store_word sil",
        "inc rdi",
        "dec edx",
        "jnz 6b",
        "99: ret",
        ".purgem store_word",
    )
}
