//! Model-specific registers (Intel SDM volume 4; AMD APM volume 2).

use core::arch::asm;

/// Local APIC base and mode.
pub const APIC_BASE: u32 = 0x1b;
/// How branches are guessed: IBRS, STIBP, BHI_DIS_S.
pub const SPEC_CTRL: u32 = 0x48;
/// Barriers: a one to bit 0 makes branches forget.
pub const PRED_CMD: u32 = 0x49;
/// What the processor has and has not (IA32_ARCH_CAPABILITIES).
pub const ARCH_CAPABILITIES: u32 = 0x10a;
/// Deadline of the local timer, in TSC ticks.
pub const TSC_DEADLINE: u32 = 0x6e0;
/// Memory types behind the page tables' PAT bits.
pub const PAT: u32 = 0x277;
/// Extended features: SYSCALL, NXE.
pub const EFER: u32 = 0xc000_0080;
/// Selectors that SYSCALL and SYSRET load.
pub const STAR: u32 = 0xc000_0081;
/// Where SYSCALL enters.
pub const LSTAR: u32 = 0xc000_0082;
/// Flags that SYSCALL clears.
pub const SFMASK: u32 = 0xc000_0084;
/// Base of FS.
pub const FS_BASE: u32 = 0xc000_0100;
/// Base of GS.
pub const GS_BASE: u32 = 0xc000_0101;
/// What SWAPGS exchanges with the base of GS.
pub const KERNEL_GS_BASE: u32 = 0xc000_0102;
/// What RDTSCP and RDPID return: the CPU's number.
pub const TSC_AUX: u32 = 0xc000_0103;
/// First register of the x2APIC.
pub const X2APIC: u32 = 0x800;
/// Names the page of the paravirtual clock (KVM).
pub const KVM_SYSTEM_TIME: u32 = 0x4b56_4d01;
/// Names the word by which an interrupt is acknowledged without an exit (KVM).
pub const KVM_PV_EOI: u32 = 0x4b56_4d04;
/// Names the record of the paravirtual wall clock, and fills it (KVM).
pub const KVM_WALL_CLOCK: u32 = 0x4b56_4d00;

/// Reads a register.
///
/// # Safety
/// The processor has the register.
#[inline(always)]
pub unsafe fn read(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller knows that the register exists.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high,
             options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a register.
///
/// # Safety
/// The processor has the register, accepts the value, and the kernel expects its effect.
#[inline(always)]
pub unsafe fn write(register: u32, value: u64) {
    // SAFETY: the caller vouches for register and value.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}
