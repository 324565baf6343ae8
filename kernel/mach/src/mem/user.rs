//! Touching a program's memory.
//!
//! A program's pointer may be anything, and what it points to may not be mapped yet. Each
//! instruction here that touches it is in the table of expected faults
//! ([`arch::fixup`]), so a fault ends the copy with the address that faulted; the caller
//! resolves it in ordinary context and goes on from there. Addresses outside the
//! user half are refused before. SMAP is lifted for these instructions only.

use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::VirtAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The first address that no program can use. The last page of the lower half stays
/// unmapped, so that no instruction can run off its end.
pub const USER_END: VirtAddr = VirtAddr((1 << arch::layout::USER_BITS) - 4096);

/// The program's memory could not be touched (yet).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Where.
    pub addr: VirtAddr,
    /// Bytes that were copied before; a few more may have been.
    pub done: usize,
}

/// Values that are nothing but bytes: any bytes are a valid one, and it has no padding.
pub trait Pod: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Pod for T {}

/// The processor has SMAP, and `stac` exists. Set once at boot.
static HAS_SMAP: AtomicBool = AtomicBool::new(false);

/// Finds out how to reach user memory; once at boot.
pub(super) fn init() {
    HAS_SMAP.store(arch::cpuid::has_smap(), Relaxed);
}

/// While it lives, this CPU may touch user pages. Only this module's instructions run.
struct Access {
    smap: bool,
}

impl Access {
    #[inline(always)]
    fn begin() -> Self {
        let smap = HAS_SMAP.load(Relaxed);
        if smap {
            // SAFETY: lifts a protection; `drop` puts it back.
            unsafe { asm!("stac", options(nostack)) };
        }
        Self { smap }
    }
}

impl Drop for Access {
    #[inline(always)]
    fn drop(&mut self) {
        if self.smap {
            // SAFETY: ends what `begin` began.
            unsafe { asm!("clac", options(nostack)) };
        }
    }
}

/// Refuses ranges that leave the user half, with a fault there: nobody resolves it.
#[inline(always)]
fn check(at: VirtAddr, len: usize) -> Result<(), Fault> {
    let fits = at <= USER_END && len as u64 <= USER_END.0.wrapping_sub(at.0);
    if fits {
        Ok(())
    } else {
        Err(Fault {
            addr: at.max(USER_END),
            done: 0,
        })
    }
}

/// How a copy ended: where it faulted, and how many bytes were left; 0 left is success.
#[repr(C)]
struct Ended {
    fault: u64,
    left: usize,
}

impl Ended {
    #[inline(always)]
    fn result(self, len: usize) -> Result<(), Fault> {
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
        unsafe extern "sysv64" fn $name(to: *mut u8, from: *const u8, len: usize) -> Ended {
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
unsafe extern "sysv64" fn fill_stores(to: *mut u8, byte: u64, len: usize) -> Ended {
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

/// Copies `len` bytes of a program to `to`.
///
/// # Safety
/// `len` bytes are writable at `to`.
#[inline]
pub(super) unsafe fn copy_in(to: *mut u8, from: VirtAddr, len: usize) -> Result<(), Fault> {
    check(from, len)?;
    let from = core::ptr::with_exposed_provenance(from.0 as usize);
    let _access = Access::begin();
    // SAFETY: the user range was checked, the caller vouches for the kernel's; user and
    // kernel addresses never overlap.
    unsafe { copy_loads(to, from, len) }.result(len)
}

/// Copies `len` bytes from `from` to a program.
///
/// # Safety
/// `len` bytes are readable at `from`.
#[inline]
pub(super) unsafe fn copy_out(from: *const u8, to: VirtAddr, len: usize) -> Result<(), Fault> {
    check(to, len)?;
    let to = core::ptr::with_exposed_provenance_mut(to.0 as usize);
    let _access = Access::begin();
    // SAFETY: as in `copy_in`.
    unsafe { copy_stores(to, from, len) }.result(len)
}

/// Fills `to` with what the program has at `from`.
#[inline]
pub fn copy_from_user(to: &mut [u8], from: VirtAddr) -> Result<(), Fault> {
    // SAFETY: the slice is writable.
    unsafe { copy_in(to.as_mut_ptr(), from, to.len()) }
}

/// Writes all of `from` to the program's memory at `to`.
#[inline]
pub fn copy_to_user(to: VirtAddr, from: &[u8]) -> Result<(), Fault> {
    // SAFETY: the slice is readable.
    unsafe { copy_out(from.as_ptr(), to, from.len()) }
}

/// Writes `len` bytes of `byte` to the program's memory at `to`.
pub fn fill_user(to: VirtAddr, byte: u8, len: usize) -> Result<(), Fault> {
    check(to, len)?;
    let word = u64::from(byte) * 0x0101_0101_0101_0101;
    let to = core::ptr::with_exposed_provenance_mut(to.0 as usize);
    let _access = Access::begin();
    // SAFETY: the range was checked.
    unsafe { fill_stores(to, word, len) }.result(len)
}

/// Words must be aligned; a fault at the end of the address space says otherwise.
fn check_word(at: VirtAddr, len: usize) -> Result<(), Fault> {
    if !at.0.is_multiple_of(len as u64) {
        return Err(Fault {
            addr: VirtAddr(u64::MAX),
            done: 0,
        });
    }
    check(at, len)
}

/// The end of an access whose flag register says whether it faulted.
fn outcome<T>(faulted: u32, fault: u64, value: T) -> Result<T, Fault> {
    if faulted == 0 {
        Ok(value)
    } else {
        Err(Fault {
            addr: VirtAddr(fault),
            done: 0,
        })
    }
}

/// One access of a word, whole or not at all; `rax` gets the address of a fault.
macro_rules! access {
    ($instruction:literal, $($operands:tt)*) => {
        let access = Access::begin();
        // SAFETY: the address was checked to be the program's; a fault is expected.
        unsafe {
            asm!(
                "mov {faulted:e}, 1",
                concat!("2: ", $instruction),
                "xor {faulted:e}, {faulted:e}",
                "3:",
                ".pushsection .fixups, \"a\"",
                ".quad 2b, 3b",
                ".popsection",
                $($operands)*
                options(nostack)
            )
        }
        drop(access);
    };
}

macro_rules! word_functions {
    ($load:ident, $store:ident, $word:ty, $mov_load:literal, $mov_store:literal) => {
        #[doc = concat!("Reads the program's aligned `", stringify!($word), "` at `at` at once.")]
        #[inline]
        pub fn $load(at: VirtAddr) -> Result<$word, Fault> {
            check_word(at, size_of::<$word>())?;
            let (faulted, value, fault): (u32, u64, u64);
            access!($mov_load, at = in(reg) at.0, value = out(reg) value,
                faulted = out(reg) faulted, out("rax") fault,);
            outcome(faulted, fault, value as $word)
        }

        #[doc = concat!("Writes the program's aligned `", stringify!($word), "` at `at` at once.")]
        #[inline]
        pub fn $store(at: VirtAddr, value: $word) -> Result<(), Fault> {
            check_word(at, size_of::<$word>())?;
            let (faulted, fault): (u32, u64);
            access!($mov_store, at = in(reg) at.0, value = in(reg) u64::from(value),
                faulted = out(reg) faulted, out("rax") fault,);
            outcome(faulted, fault, ())
        }
    };
}

/// Stores the CPU's vector registers in the program's memory at `to`, which is aligned for
/// them and has room for `len` bytes.
pub(crate) fn save_vectors(to: VirtAddr, len: usize) -> Result<(), Fault> {
    check(to, len)?;
    let (faulted, fault): (u32, u64);
    if arch::fpu::has_header() {
        access!("xsave64 [{at}]", at = in(reg) to.0, faulted = out(reg) faulted,
            inlateout("rax") u64::MAX => fault, in("rdx") u64::MAX,);
    } else {
        access!("fxsave64 [{at}]", at = in(reg) to.0, faulted = out(reg) faulted,
            out("rax") fault,);
    }
    outcome(faulted, fault, ())
}

/// Loads the CPU's vector registers from `len` bytes of the program's memory at `from`,
/// aligned as for [`save_vectors`]. What the processor refuses is a fault at an address that
/// nobody resolves; some registers may be loaded then.
pub(crate) fn load_vectors(from: VirtAddr, len: usize) -> Result<(), Fault> {
    check(from, len)?;
    let (faulted, fault): (u32, u64);
    if arch::fpu::has_header() && len > arch::fpu::LEGACY_BYTES {
        access!("xrstor64 [{at}]", at = in(reg) from.0, faulted = out(reg) faulted,
            inlateout("rax") u64::MAX => fault, in("rdx") u64::MAX,);
    } else {
        access!("fxrstor64 [{at}]", at = in(reg) from.0, faulted = out(reg) faulted,
            out("rax") fault,);
    }
    outcome(faulted, fault, ())
}

word_functions!(
    load_user_u32,
    store_user_u32,
    u32,
    "mov {value:e}, [{at}]",
    "mov [{at}], {value:e}"
);
word_functions!(
    load_user_u64,
    store_user_u64,
    u64,
    "mov {value}, [{at}]",
    "mov [{at}], {value}"
);

/// Replaces the program's word at `at` by `new` if it is `expected`, atomically. Returns
/// what it was.
pub fn compare_exchange_user_u32(at: VirtAddr, expected: u32, new: u32) -> Result<u32, Fault> {
    check_word(at, 4)?;
    let faulted: u32;
    let found: u64;
    access!("lock cmpxchg [{at}], {new:e}", at = in(reg) at.0, new = in(reg) new,
        faulted = out(reg) faulted, inout("rax") u64::from(expected) => found,);
    outcome(faulted, found, found as u32)
}
