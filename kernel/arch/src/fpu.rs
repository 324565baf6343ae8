//! Vector and floating-point registers: XSAVE where there is XSAVE, else FXSAVE.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::{cpuid, instr};

/// x87, SSE, AVX and the three parts of AVX-512 (Intel SDM volume 1, 13.1).
const WANTED: u64 = 0b1110_0111;
const AVX512: u64 = 0b1110_0000;
const X87_SSE: u64 = 0b11;
const CR4_OSXSAVE: u64 = 1 << 18;

/// Bytes of the FXSAVE area, which also starts every XSAVE area.
pub const LEGACY_BYTES: usize = 512;
/// Bytes of the header that follows it.
pub const HEADER_BYTES: usize = 64;
/// Alignment of an area.
pub const ALIGN: usize = 64;

const BY_FXSAVE: u8 = 0;
const BY_XSAVE: u8 = 1;
const BY_XSAVEOPT: u8 = 2;

/// How this machine's processors save vector registers; they are alike.
static MEANS: AtomicU8 = AtomicU8::new(BY_FXSAVE);
/// What they save, likewise.
static FEATURES: AtomicU64 = AtomicU64::new(X87_SSE);
/// Bits of MXCSR that they have.
static MXCSR_MASK: AtomicU32 = AtomicU32::new(0xffbf);
/// How long their save area is.
static AREA_BYTES: AtomicU32 = AtomicU32::new(LEGACY_BYTES as u32);

/// Turns the registers on for this CPU and learns how much there is to save.
///
/// # Safety
/// Called once on each CPU before a program runs on it.
pub unsafe fn init() {
    learn_mxcsr_mask();
    if !cpuid::has_xsave() {
        return;
    }
    // SAFETY: CPUID offers XSAVE.
    unsafe { instr::write_cr4(instr::read_cr4() | CR4_OSXSAVE) };
    let mut features = u64::from(cpuid::leaf(0xd, 0).eax) & WANTED;
    if features & AVX512 != AVX512 {
        features &= !AVX512;
    }
    // SAFETY: only features that CPUID offers are set, in a combination that XCR0 accepts.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") features as u32, in("edx") 0, options(nomem, nostack));
    }
    FEATURES.store(features, Ordering::Relaxed);
    AREA_BYTES.store(cpuid::leaf(0xd, 0).ebx, Ordering::Relaxed);
    MEANS.store(
        if cpuid::has_xsaveopt() {
            BY_XSAVEOPT
        } else {
            BY_XSAVE
        },
        Ordering::Relaxed,
    );
}

/// State components that are switched on (XCR0).
pub fn features() -> u64 {
    FEATURES.load(Ordering::Relaxed)
}

/// Bytes of an area.
pub fn area_bytes() -> usize {
    AREA_BYTES.load(Ordering::Relaxed) as usize
}

/// An area has the XSAVE header.
pub fn has_header() -> bool {
    MEANS.load(Ordering::Relaxed) != BY_FXSAVE
}

/// Stores this CPU's registers into `area`.
///
/// # Safety
/// `area` points to [`area_bytes`] bytes aligned to [`ALIGN`] that hold an area, and
/// nobody else touches them.
pub unsafe fn save(area: *mut u8) {
    // SAFETY: the caller vouches for the area; the means is one that CPUID offers.
    unsafe {
        match MEANS.load(Ordering::Relaxed) {
            BY_XSAVEOPT => {
                asm!("xsaveopt64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
            }
            BY_XSAVE => {
                asm!("xsave64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
            }
            _ => asm!("fxsave64 [{}]", in(reg) area, options(nostack)),
        }
    }
}

/// Loads this CPU's registers from `area`.
///
/// # Safety
/// As for [`save`]; MXCSR and the header are valid, or the processor faults.
pub unsafe fn restore(area: *const u8) {
    // SAFETY: the caller vouches for the area.
    unsafe {
        if has_header() {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack, readonly));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, readonly));
        }
    }
}

/// The MXCSR bits that the processor accepts.
pub fn mxcsr_mask() -> u32 {
    MXCSR_MASK.load(Ordering::Relaxed)
}

/// Learns [`mxcsr_mask`] from the image that FXSAVE writes (SDM volume 1, 11.6.6).
fn learn_mxcsr_mask() {
    #[repr(align(16))]
    struct Image([u8; LEGACY_BYTES]);
    let mut image = Image([0; LEGACY_BYTES]);
    // SAFETY: the image has the size and alignment that FXSAVE asks for.
    unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut image, options(nostack)) };
    let mask = u32::from_le_bytes([image.0[28], image.0[29], image.0[30], image.0[31]]);
    if mask != 0 {
        MXCSR_MASK.store(mask, Ordering::Relaxed);
    }
}
