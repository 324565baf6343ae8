//! `memcpy` and its kin, which the compiler calls by name.
//!
//! Plain loops over 64 bytes: string instructions (`rep movs`) have a start-up cost on
//! real processors and are slow to emulate, and the kernel has no vector registers. Written
//! in assembler since the compiler would turn a loop that copies into a call of `memcpy`.

use core::arch::naked_asm;

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

/// C's `memcpy`.
///
/// # Safety
/// `count` bytes are readable at `from` and writable at `to`, and do not overlap.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "sub rdx, 64",
        "jb 3f",
        "2:",
        move_64!(),
        "add rsi, 64",
        "add rdi, 64",
        "sub rdx, 64",
        "jae 2b",
        "3: add edx, 64",
        "cmp edx, 8",
        "jb 5f",
        "4: mov rcx, [rsi]",
        "mov [rdi], rcx",
        "add rsi, 8",
        "add rdi, 8",
        "sub edx, 8",
        "cmp edx, 8",
        "jae 4b",
        "5: test edx, edx",
        "jz 7f",
        "6: mov cl, [rsi]",
        "mov [rdi], cl",
        "inc rsi",
        "inc rdi",
        "dec edx",
        "jnz 6b",
        "7: ret",
    )
}

/// C's `memmove`: backwards when the target lies inside of the source.
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
        "jae {memcpy}",
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
