//! Accesses that are done whole or not at all: words, and the vector registers.

use core::arch::asm;

use base::VirtAddr;

use super::{Access, Fault, check};

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
