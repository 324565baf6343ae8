//! KVM's paravirtual clocks (Linux's `Documentation/virt/kvm/x86/msr.rst`).
//!
//! `MSR_KVM_SYSTEM_TIME_NEW` names a record in which the hypervisor keeps the scale of its
//! own clock for this CPU; reading it is arithmetic and costs no exit. It is the boot
//! CPU's, and only that CPU reads it. Each write of `MSR_KVM_WALL_CLOCK_NEW` has the
//! hypervisor store the wall clock's time at that clock's zero, as it is now.

use core::cell::UnsafeCell;
use core::ptr::addr_of;
use core::sync::atomic::{Ordering, fence};

use arch::layout::IMAGE_OFFSET;
use arch::{cpuid, msr};
use timekeeping::{Reading, Reference, SECOND_NS};

const SIGNATURE_LEAF: u32 = 0x4000_0000;
const FEATURES_LEAF: u32 = 0x4000_0001;
const HAS_NEW_MSRS: u32 = 1 << 3;
const ENABLE: u64 = 1;

/// The clock counts nanoseconds.
pub(super) const REFERENCE: Reference = Reference {
    hertz: SECOND_NS,
    bits: 64,
};

/// `struct pvclock_vcpu_time_info`. The version is odd while the rest changes.
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

/// `struct pvclock_wall_clock`.
#[repr(C, align(4))]
struct WallRecord {
    version: u32,
    seconds: u32,
    nanos: u32,
}

struct Shared<T>(UnsafeCell<T>);

// SAFETY: only the boot CPU and the hypervisor touch the records, by volatile accesses.
unsafe impl<T> Sync for Shared<T> {}

/// The host writes it, at an address that it was told once.
static RECORD: Shared<Record> = Shared(UnsafeCell::new(Record {
    version: 0,
    padding: 0,
    tsc: 0,
    nanos: 0,
    multiplier: 0,
    shift: 0,
    flags: 0,
    padding2: [0; 2],
}));

/// Likewise.
static WALL_RECORD: Shared<WallRecord> = Shared(UnsafeCell::new(WallRecord {
    version: 0,
    seconds: 0,
    nanos: 0,
}));

fn is_offered() -> bool {
    let signature = cpuid::leaf(SIGNATURE_LEAF, 0);
    let is_kvm = [signature.ebx, signature.ecx, signature.edx]
        == [*b"KVMK", *b"VMKV", *b"M\0\0\0"].map(u32::from_le_bytes);
    is_kvm && cpuid::leaf(FEATURES_LEAF, 0).eax & HAS_NEW_MSRS != 0
}

/// Turns the boot CPU's clock on; false if there is none.
pub(super) fn enable() -> bool {
    if !is_offered() {
        return false;
    }
    let physical = RECORD.0.get() as u64 - IMAGE_OFFSET;
    // SAFETY: KVM has the register; the record is static, aligned and in the image.
    unsafe { msr::write(msr::KVM_SYSTEM_TIME, physical | ENABLE) };
    tsc_hertz().is_some()
}

/// Nanoseconds of the hypervisor's clock at a value of the time-stamp counter.
struct Line {
    tsc: u64,
    nanos: u64,
    multiplier: u32,
    shift: i8,
}

fn line() -> Line {
    let record = RECORD.0.get();
    loop {
        // SAFETY: the record is static, and the hypervisor changes it only while this CPU
        // is not running.
        let (before, line, after) = unsafe {
            let before = addr_of!((*record).version).read_volatile();
            fence(Ordering::Acquire);
            let line = Line {
                tsc: addr_of!((*record).tsc).read_volatile(),
                nanos: addr_of!((*record).nanos).read_volatile(),
                multiplier: addr_of!((*record).multiplier).read_volatile(),
                shift: addr_of!((*record).shift).read_volatile(),
            };
            fence(Ordering::Acquire);
            (before, line, addr_of!((*record).version).read_volatile())
        };
        if before & 1 == 0 && before == after {
            return line;
        }
    }
}

/// The clock now. The hypervisor computes it from the very counter, so nothing lies between.
pub(super) fn read() -> Reading {
    let line = line();
    let now = super::cycles();
    let ticks = u128::from(now.saturating_sub(line.tsc));
    let distance = u32::from(line.shift.unsigned_abs());
    let shifted = match line.shift < 0 {
        true => ticks.checked_shr(distance),
        false => ticks.checked_shl(distance),
    };
    let since = (shifted
        .unwrap_or(0)
        .wrapping_mul(u128::from(line.multiplier)))
        >> 32;
    Reading {
        before: now,
        count: line.nanos.wrapping_add(since as u64),
        after: now,
    }
}

/// Ticks per second as the hypervisor scales them.
pub(super) fn tsc_hertz() -> Option<u64> {
    let line = line();
    hertz(line.multiplier, line.shift)
}

/// Nanoseconds since 1970 at the zero of the clock, as the host's wall clock says now.
pub(super) fn wall_at_zero() -> u64 {
    let record = WALL_RECORD.0.get();
    // SAFETY: as in `enable`; the hypervisor fills the record while it executes the write.
    let (seconds, nanos) = unsafe {
        msr::write(msr::KVM_WALL_CLOCK, record as u64 - IMAGE_OFFSET);
        (
            addr_of!((*record).seconds).read_volatile(),
            addr_of!((*record).nanos).read_volatile(),
        )
    };
    u64::from(seconds) * SECOND_NS + u64::from(nanos)
}

/// `nanos = (ticks << shift) * multiplier >> 32`, solved for a second.
fn hertz(multiplier: u32, shift: i8) -> Option<u64> {
    let scaled = (u128::from(SECOND_NS) << 32).checked_div(u128::from(multiplier))?;
    let distance = u32::from(shift.unsigned_abs());
    let ticks = if shift < 0 {
        scaled.checked_shl(distance)?
    } else {
        scaled.checked_shr(distance)?
    };
    u64::try_from(ticks).ok().filter(|&ticks| ticks != 0)
}
