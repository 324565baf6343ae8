//! `memcpy` and its kin, which the compiler calls by name.
//!
//! Plain loops over 64 bytes: string instructions (`rep movs`) have a start-up cost on
//! real processors and are slow to emulate. From [`LARGE`] bytes on (pages, mostly) the
//! loops borrow SSE registers, which every x86-64 processor has: the kernel itself uses none,
//! so they hold a program's values and are put back at the end. Written in assembler
//! since the compiler would turn a loop that copies into a call of `memcpy`.

use core::arch::naked_asm;

/// Bytes from which on borrowing vector registers pays.
pub(super) const LARGE: usize = 512;

/// Copies 64 bytes from `rsi` to `rdi` through four vector registers, at an offset.
macro_rules! move_64_wide {
    ($at:literal) => {
        concat!(
            "movups xmm0, [rsi + 0x",
            $at,
            "0]; movups xmm1, [rsi + 0x",
            $at,
            "0 + 16];",
            "movups xmm2, [rsi + 0x",
            $at,
            "0 + 32]; movups xmm3, [rsi + 0x",
            $at,
            "0 + 48];",
            "movups [rdi + 0x",
            $at,
            "0], xmm0; movups [rdi + 0x",
            $at,
            "0 + 16], xmm1;",
            "movups [rdi + 0x",
            $at,
            "0 + 32], xmm2; movups [rdi + 0x",
            $at,
            "0 + 48], xmm3",
        )
    };
}

/// Stores `xmm0` four times at `rdi` and an offset.
macro_rules! fill_64_wide {
    ($at:literal) => {
        concat!(
            "movups [rdi + 0x",
            $at,
            "0], xmm0; movups [rdi + 0x",
            $at,
            "0 + 16], xmm0;",
            "movups [rdi + 0x",
            $at,
            "0 + 32], xmm0; movups [rdi + 0x",
            $at,
            "0 + 48], xmm0",
        )
    };
}

/// Copies 64 bytes from `rsi` to `rdi` through `rcx` and `r8` to `r10`.
macro_rules! move_64 {
    () => {
        "mov rcx, [rsi]
         mov r8, [rsi + 8]
         mov r9, [rsi + 16]
         mov r10, [rsi + 24]
         mov [rdi], rcx
         mov [rdi + 8], r8
         mov [rdi + 16], r9
         mov [rdi + 24], r10
         mov rcx, [rsi + 32]
         mov r8, [rsi + 40]
         mov r9, [rsi + 48]
         mov r10, [rsi + 56]
         mov [rdi + 32], rcx
         mov [rdi + 40], r8
         mov [rdi + 48], r9
         mov [rdi + 56], r10"
    };
}

/// Copies `edx` bytes, fewer than 64, from `rsi` to `rdi`, by words that overlap in the middle,
/// and returns. Label 22 is its start.
macro_rules! move_below_64 {
    () => {
        "22: cmp edx, 16
         ja 3f
         cmp edx, 8
         jb 5f
         mov rcx, [rsi]
         mov r8, [rsi + rdx - 8]
         mov [rdi], rcx
         mov [rdi + rdx - 8], r8
         ret
         3: cmp edx, 32
         mov rcx, [rsi]
         mov r8, [rsi + 8]
         jbe 4f
         mov r9, [rsi + 16]
         mov r10, [rsi + 24]
         mov [rdi], rcx
         mov [rdi + 8], r8
         mov [rdi + 16], r9
         mov [rdi + 24], r10
         mov rcx, [rsi + rdx - 32]
         mov r8, [rsi + rdx - 24]
         mov r9, [rsi + rdx - 16]
         mov r10, [rsi + rdx - 8]
         mov [rdi + rdx - 32], rcx
         mov [rdi + rdx - 24], r8
         mov [rdi + rdx - 16], r9
         mov [rdi + rdx - 8], r10
         ret
         4: mov r9, [rsi + rdx - 16]
         mov r10, [rsi + rdx - 8]
         mov [rdi], rcx
         mov [rdi + 8], r8
         mov [rdi + rdx - 16], r9
         mov [rdi + rdx - 8], r10
         ret
         5: cmp edx, 4
         jb 6f
         mov ecx, [rsi]
         mov r8d, [rsi + rdx - 4]
         mov [rdi], ecx
         mov [rdi + rdx - 4], r8d
         ret
         5: mov cl, [rsi + rdx]
         mov [rdi + rdx], cl
         6: dec edx
         jns 5b
         ret"
    };
}

/// C's `memcpy`.
///
/// # Safety
/// `count` bytes are readable at `from` and writable at `to`, and do not overlap.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "cmp rdx, 64",
        "jae 2f",
        move_below_64!(),
        "2: cmp rdx, {large}",
        "jb 7f",
        "sub rsp, 64",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "8:",
        move_64_wide!("0"),
        move_64_wide!("4"),
        move_64_wide!("8"),
        move_64_wide!("c"),
        "add rsi, 256",
        "add rdi, 256",
        "sub rdx, 256",
        "cmp rdx, 256",
        "jae 8b",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "add rsp, 64",
        "cmp rdx, 64",
        "jb 9f",
        "7:",
        move_64!(),
        "add rsi, 64",
        "add rdi, 64",
        "sub rdx, 64",
        "cmp rdx, 64",
        "jae 7b",
        "9: test edx, edx",
        "jnz 22b",
        "ret",
        large = const LARGE,
    )
}

/// C's `memmove`: word by word where the two overlap, from the end that is safe.
///
/// # Safety
/// `count` bytes are readable at `from` and writable at `to`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "sub rax, rsi",
        "cmp rax, rdx",
        "jae 6f",
        "mov rax, rdi",
        "cmp rdx, 8",
        "jb 3f",
        "2: mov rcx, [rsi + rdx - 8]",
        "mov [rdi + rdx - 8], rcx",
        "sub rdx, 8",
        "cmp rdx, 8",
        "jae 2b",
        "3: test edx, edx",
        "jz 5f",
        "4: mov cl, [rsi + rdx - 1]",
        "mov [rdi + rdx - 1], cl",
        "dec rdx",
        "jnz 4b",
        "5: ret",
        // Not behind the source's start: forwards, unless they are apart.
        "6: neg rax",
        "cmp rax, rdx",
        "jae {memcpy}",
        "mov rax, rdi",
        "add rdi, rdx",
        "add rsi, rdx",
        "neg rdx",
        "add rdx, 8",
        "jg 8f",
        "7: mov rcx, [rsi + rdx - 8]",
        "mov [rdi + rdx - 8], rcx",
        "add rdx, 8",
        "jle 7b",
        "8: sub rdx, 8",
        "jz 5b",
        "9: mov cl, [rsi + rdx]",
        "mov [rdi + rdx], cl",
        "inc rdx",
        "jnz 9b",
        "ret",
        memcpy = sym memcpy,
    )
}

/// C's `memset`.
///
/// # Safety
/// `count` bytes are writable at `to`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "movzx esi, sil",
        "mov rcx, 0x0101010101010101",
        "imul rsi, rcx",
        "cmp rdx, {large}",
        "jb 9f",
        "sub rsp, 16",
        "movups [rsp], xmm0",
        "movq xmm0, rsi",
        "punpcklqdq xmm0, xmm0",
        "sub rdx, 256",
        "8:",
        fill_64_wide!("0"),
        fill_64_wide!("4"),
        fill_64_wide!("8"),
        fill_64_wide!("c"),
        "add rdi, 256",
        "sub rdx, 256",
        "jae 8b",
        "add rdx, 256",
        "movups xmm0, [rsp]",
        "add rsp, 16",
        "9:",
        "sub rdx, 64",
        "jb 3f",
        "2: mov [rdi], rsi",
        "mov [rdi + 8], rsi",
        "mov [rdi + 16], rsi",
        "mov [rdi + 24], rsi",
        "mov [rdi + 32], rsi",
        "mov [rdi + 40], rsi",
        "mov [rdi + 48], rsi",
        "mov [rdi + 56], rsi",
        "add rdi, 64",
        "sub rdx, 64",
        "jae 2b",
        "3: add edx, 64",
        "cmp edx, 8",
        "jb 5f",
        "4: mov [rdi], rsi",
        "add rdi, 8",
        "sub edx, 8",
        "cmp edx, 8",
        "jae 4b",
        "5: test edx, edx",
        "jz 7f",
        "6: mov [rdi], sil",
        "inc rdi",
        "dec edx",
        "jnz 6b",
        "7: ret",
        large = const LARGE,
    )
}

/// C's `memcmp`.
///
/// # Safety
/// `count` bytes are readable at both places.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    naked_asm!(
        "cmp rdx, 8",
        "jb 3f",
        "2: mov rax, [rdi]",
        "mov rcx, [rsi]",
        "cmp rax, rcx",
        "jne 6f",
        "add rdi, 8",
        "add rsi, 8",
        "sub rdx, 8",
        "cmp rdx, 8",
        "jae 2b",
        "3: test edx, edx",
        "jz 5f",
        "4: movzx eax, byte ptr [rdi]",
        "movzx ecx, byte ptr [rsi]",
        "cmp eax, ecx",
        "jne 7f",
        "inc rdi",
        "inc rsi",
        "dec edx",
        "jnz 4b",
        "5: xor eax, eax",
        "ret",
        // The first byte that differs decides: compare as big-endian numbers.
        "6: bswap rax",
        "bswap rcx",
        "cmp rax, rcx",
        "7: sbb eax, eax",
        "or eax, 1",
        "ret",
    )
}

/// Whether two ranges differ; not zero if they do.
///
/// # Safety
/// As for [`memcmp`].
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn bcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    naked_asm!("jmp {memcmp}", memcmp = sym memcmp)
}
