//! Touching a program's memory.
//!
//! A program's pointer may be anything, and what it points to may not be mapped yet. Each
//! instruction here that touches it is in the table of expected faults
//! ([`arch::fixup`]), so a fault ends the copy with the address that faulted; the caller
//! resolves it in ordinary context and goes on from there. Addresses outside the
//! user half are refused before. SMAP is lifted for these instructions only.

mod copy;
mod word;

pub use word::{
    compare_exchange_user_u32, load_user_u32, load_user_u64, store_user_u32, store_user_u64,
};
pub(crate) use word::{load_vectors, save_vectors};

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::VirtAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use copy::{copy_loads, copy_stores, fill_stores};

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

/// The processor has SMAP, and `stac` exists. Set once at boot. Of the processors, which are alike.
static HAS_SMAP: AtomicBool = AtomicBool::new(false);

/// Finds out how to reach user memory; once at boot.
pub(super) fn init() {
    HAS_SMAP.store(arch::cpuid::has_smap(), Relaxed);
}

/// While it lives, this CPU may touch user pages. Only the instructions of this module and those below it run.
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
