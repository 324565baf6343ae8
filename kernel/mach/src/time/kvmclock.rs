//! The speed of the time-stamp counter by KVM's paravirtual clock (Linux'
//! `Documentation/virt/kvm/x86/msr.rst`, `MSR_KVM_SYSTEM_TIME_NEW`).
//!
//! The hypervisor writes the scale of its own clock into a record that we name; the scale
//! is all we want, so the clock is turned off again at once.

use core::cell::UnsafeCell;
use core::ptr::addr_of;

use arch::layout::IMAGE_OFFSET;
use arch::{cpuid, msr};

const SIGNATURE_LEAF: u32 = 0x4000_0000;
const FEATURES_LEAF: u32 = 0x4000_0001;
const HAS_NEW_MSRS: u32 = 1 << 3;
const ENABLE: u64 = 1;

/// `struct pvclock_vcpu_time_info`.
#[repr(C, align(32))]
struct Record {
    version: u32,
    padding: u32,
    tsc: u64,
    nanos: u64,
    /// Nanoseconds per tick shifted by `shift`, as a fraction of 2^32.
    multiplier: u32,
    shift: i8,
    flags: u8,
    padding2: [u8; 2],
}

struct Shared(UnsafeCell<Record>);

// SAFETY: only the boot CPU and the hypervisor touch it, in `tsc_hertz`.
unsafe impl Sync for Shared {}

static RECORD: Shared = Shared(UnsafeCell::new(Record {
    version: 0,
    padding: 0,
    tsc: 0,
    nanos: 0,
    multiplier: 0,
    shift: 0,
    flags: 0,
    padding2: [0; 2],
}));

fn is_offered() -> bool {
    let signature = cpuid::leaf(SIGNATURE_LEAF, 0);
    let is_kvm = [signature.ebx, signature.ecx, signature.edx]
        == [*b"KVMK", *b"VMKV", *b"M\0\0\0"].map(u32::from_le_bytes);
    is_kvm && cpuid::leaf(FEATURES_LEAF, 0).eax & HAS_NEW_MSRS != 0
}

/// Ticks per second, if the machine runs under KVM.
pub(super) fn tsc_hertz() -> Option<u64> {
    if !is_offered() {
        return None;
    }
    let record = RECORD.0.get();
    let physical = record as u64 - IMAGE_OFFSET;
    // SAFETY: KVM has the register; the record is static, aligned and in the image, and the
    // hypervisor writes it while it is enabled and not after.
    let (multiplier, shift) = unsafe {
        msr::write(msr::KVM_SYSTEM_TIME, physical | ENABLE);
        let scale = (
            addr_of!((*record).multiplier).read_volatile(),
            addr_of!((*record).shift).read_volatile(),
        );
        msr::write(msr::KVM_SYSTEM_TIME, 0);
        scale
    };
    hertz(multiplier, shift)
}

/// `nanos = (ticks << shift) * multiplier >> 32`, solved for a second.
fn hertz(multiplier: u32, shift: i8) -> Option<u64> {
    let scaled = (1_000_000_000_u128 << 32).checked_div(u128::from(multiplier))?;
    let distance = u32::from(shift.unsigned_abs());
    let ticks = if shift < 0 {
        scaled.checked_shl(distance)?
    } else {
        scaled.checked_shr(distance)?
    };
    u64::try_from(ticks).ok().filter(|&ticks| ticks != 0)
}
