//! What this machine does about the vulnerabilities of its processors (`speculation`), and where.
//!
//! The first CPU reads what the processor says, makes the plan and, if VERW is in it, rewrites
//! the exits to user mode while the text can be written. Each CPU sets its registers when it
//! starts. A switch of threads asks one flag; where it is down, that is all.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arch::{cpuid, msr};
pub use speculation::Vulnerability;
use speculation::{Features, Plan, Processor, Unaffected, Vendor};

use crate::sync::Once;

/// The words on the kernel's command line: all off; VERW even where nothing says it helps.
const OFF: &str = "mitigations=off";
const ALWAYS_CLEAR: &str = "mds=full";
const EFER_AUTOMATIC_IBRS: u64 = 1 << 21;

/// What this machine's processors need; they are alike.
static STATE: Once<(Processor, Plan)> = Once::new();
/// Whether a change of user has a price. Of the processors, which are alike.
static SEPARATES_USERS: AtomicBool = AtomicBool::new(false);

/// Makes the plan; on the first CPU, while the kernel's text can be written.
///
/// # Safety
/// Called once, before other CPUs run.
pub(crate) unsafe fn init(info: &crate::boot::BootInfo) {
    let processor = processor();
    let mut plan = Plan::new(&processor, info.has_word(OFF));
    plan.clear_buffers |= info.has_word(ALWAYS_CLEAR);
    STATE.call_once(|| (processor, plan));
    SEPARATES_USERS.store(plan.barrier || plan.fill_returns, Relaxed);
    if plan.clear_buffers {
        // SAFETY: the caller vouches for the moment.
        unsafe { arch::speculation::clear_buffers_on_exit() };
    }
}

/// Sets this CPU's registers; each CPU when it starts.
pub(crate) fn set_up_cpu() {
    let Some((_, plan)) = STATE.get() else {
        return;
    };
    // SAFETY: the plan has what CPUID offers, and the kernel expects no other effect of it.
    unsafe {
        if plan.spec_ctrl != 0 {
            msr::write(msr::SPEC_CTRL, plan.spec_ctrl);
        }
        if plan.automatic_ibrs {
            msr::write(msr::EFER, msr::read(msr::EFER) | EFER_AUTOMATIC_IBRS);
        }
    }
}

/// Whether [`separate_users`] does anything.
#[inline(always)]
pub fn separates_users() -> bool {
    SEPARATES_USERS.load(Relaxed)
}

/// Another user's program comes to this CPU: what the last one taught it is forgotten.
#[cold]
pub fn separate_users() {
    let Some((_, plan)) = STATE.get() else {
        return;
    };
    if plan.barrier {
        // SAFETY: it is in the plan because CPUID offers it.
        unsafe { arch::speculation::forget_branches() };
    }
    if plan.fill_returns {
        arch::speculation::fill_return_stack();
    }
}

/// What is true of a vulnerability here, as /sys/devices/system/cpu/vulnerabilities says it.
pub fn report(vulnerability: Vulnerability, text: &mut dyn fmt::Write) -> fmt::Result {
    match STATE.get() {
        Some((processor, plan)) => vulnerability.write(processor, plan, text),
        None => Err(fmt::Error),
    }
}

fn bit(word: u32, index: u32) -> bool {
    word >> index & 1 != 0
}

/// What the processor says of itself.
fn processor() -> Processor {
    let signature = cpuid::leaf(1, 0).eax;
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    let model = signature >> 4 & 0xf | (signature >> 16 & 0xf) << 4;
    let says = capabilities();
    Processor {
        vendor: vendor(),
        family: if base == 0xf { base + extended } else { base },
        model,
        is_virtual: cpuid::has_hypervisor(),
        has_rtm: bit(cpuid::leaf(7, 0).ebx, 11),
        unaffected: unaffected(says),
        features: features(says),
    }
}

fn vendor() -> Vendor {
    let name = cpuid::leaf(0, 0);
    let words = [name.ebx, name.edx, name.ecx].map(u32::to_le_bytes);
    match words.as_flattened() {
        b"GenuineIntel" => Vendor::Intel,
        b"AuthenticAMD" | b"HygonGenuine" => Vendor::Amd,
        _ => Vendor::Other,
    }
}

/// IA32_ARCH_CAPABILITIES; 0 without it.
fn capabilities() -> u64 {
    match bit(cpuid::leaf(7, 0).edx, 29) {
        // SAFETY: CPUID offers the register.
        true => unsafe { msr::read(msr::ARCH_CAPABILITIES) },
        false => 0,
    }
}

fn unaffected(says: u64) -> Unaffected {
    let says = |index: u32| says >> index & 1 != 0;
    let amd = cpuid::leaf(0x8000_0021, 0);
    Unaffected {
        rdcl: says(0),
        ssb: says(4) || bit(cpuid::leaf(0x8000_0008, 0).ebx, 26),
        mds: says(5),
        taa: says(8),
        mmio: says(13) && says(14) && says(15),
        gds: says(26),
        rfds: says(27),
        bhi: says(20),
        its: says(62),
        srso: bit(amd.eax, 29),
        tsa: bit(amd.ecx, 1) && bit(amd.ecx, 2),
    }
}

fn features(says: u64) -> Features {
    let says = |index: u32| says >> index & 1 != 0;
    let (intel, amd) = (cpuid::leaf(7, 0).edx, cpuid::leaf(0x8000_0008, 0).ebx);
    Features {
        enhanced_ibrs: says(1) || bit(amd, 16),
        automatic_ibrs: bit(cpuid::leaf(0x8000_0021, 0).eax, 8),
        stibp: bit(intel, 27) || bit(amd, 15),
        barrier: bit(intel, 26) || bit(amd, 12),
        bhi_dis_s: bit(cpuid::leaf(7, 2).edx, 4),
        verw: bit(intel, 10),
        rfds_clear: says(28),
        gds_control: says(25),
    }
}
