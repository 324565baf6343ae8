//! Copies that may fault between two bytes: they stop there and say where.

use core::arch::naked_asm;

use base::VirtAddr;

use super::Fault;

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
                // One move of `size` bytes at `offset`, entered in the table of fixups.
                ".macro move_word reg, offset",
                concat!(".if ", $load),
                "77: mov \\reg, [rsi + \\offset]",
                "mov [rdi + \\offset], \\reg",
                ".else",
                "mov \\reg, [rsi + \\offset]",
                "77: mov [rdi + \\offset], \\reg",
                ".endif",
                ".pushsection .fixups, \"a\"",
                ".quad 77b, 99f",
                ".popsection",
                ".endm",
                "cmp rdx, 64",
                "jb 3f",
                "2: move_word rcx, 0",
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
                "jae 2b",
                "3: cmp edx, 8",
                "jb 5f",
                "4: move_word rcx, 0",
                "add rsi, 8",
                "add rdi, 8",
                "sub edx, 8",
                "cmp edx, 8",
                "jae 4b",
                "5: test edx, edx",
                "jz 99f",
                "6: move_word cl, 0",
                "inc rsi",
                "inc rdi",
                "dec edx",
                "jnz 6b",
                // The fault's address is in rax, what is left in rdx: the words of `Ended`.
                "99: ret",
                ".purgem move_word",
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
