//! The local APIC of each CPU (Intel SDM volume 3, chapter 12), by MSR where the
//! processor offers x2APIC, else by its page in the direct map.
//!
//! Each access to a register costs an exit to the hypervisor. KVM spares us that of the most
//! frequent one: while nothing else waits behind an interrupt it sets a bit in a word of ours
//! when it delivers it, and to clear the bit is to acknowledge (Linux's
//! `Documentation/virt/kvm/x86/msr.rst`, `MSR_KVM_EOI_EN`).

use core::sync::atomic::{AtomicBool, Ordering};

use crate::{area, cpuid, layout, msr};

/// Physical page of the registers in xAPIC mode.
const PAGE: u64 = 0xfee0_0000;
const MODE_ENABLED: u64 = 1 << 11;
const MODE_X2APIC: u64 = 1 << 10;

const ID: u32 = 0x02;
const EOI: u32 = 0x0b;
const SPURIOUS: u32 = 0x0f;
const COMMAND: u32 = 0x30;
const COMMAND_HIGH: u32 = 0x31;
const TIMER: u32 = 0x32;
const PERFORMANCE: u32 = 0x34;
const LINT0: u32 = 0x35;
const LINT1: u32 = 0x36;
const ERROR: u32 = 0x37;
const TIMER_INITIAL: u32 = 0x38;
const TIMER_CURRENT: u32 = 0x39;
const TIMER_DIVIDE: u32 = 0x3e;

const MASKED: u32 = 1 << 16;
const DELIVER_NMI: u32 = 0b100 << 8;
const DELIVER_INIT: u32 = 0b101 << 8;
const DELIVER_STARTUP: u32 = 0b110 << 8;
const ASSERT: u32 = 1 << 14;
const PENDING: u32 = 1 << 12;
const SELF: u32 = 0b01 << 18;
const ALL_OTHERS: u32 = 0b11 << 18;
const TIMER_TSC_DEADLINE: u32 = 0b10 << 17;

/// The vector that the APIC raises when there was nothing to deliver.
pub const SPURIOUS_VECTOR: u8 = 0xff;

/// How this machine's APICs are reached: all in one way, found at boot.
static X2APIC: AtomicBool = AtomicBool::new(false);

fn x2apic() -> bool {
    X2APIC.load(Ordering::Relaxed)
}

fn register(index: u32) -> *mut u32 {
    (layout::DIRECT_MAP + PAGE + u64::from(index) * 16) as *mut u32
}

fn read(index: u32) -> u32 {
    if x2apic() {
        // SAFETY: x2APIC mode is on, so the register exists.
        unsafe { msr::read(msr::X2APIC + index) as u32 }
    } else {
        // SAFETY: the page is mapped uncached at its place in the direct map.
        unsafe { register(index).read_volatile() }
    }
}

#[inline(always)]
fn write(index: u32, value: u32) {
    if x2apic() {
        // SAFETY: x2APIC mode is on; the callers below write only defined values.
        unsafe { msr::write(msr::X2APIC + index, u64::from(value)) }
    } else {
        // SAFETY: the page is mapped uncached at its place in the direct map.
        unsafe { register(index).write_volatile(value) }
    }
}

/// Turns this CPU's APIC on, its lines and timer masked; by MSR if that is allowed and
/// offered, which must be the same for all CPUs.
///
/// # Safety
/// The IDT is loaded, GS points to this CPU's area, and in xAPIC mode the page is mapped in the
/// direct map.
pub unsafe fn init(allow_x2apic: bool) {
    let wide = allow_x2apic && cpuid::has_x2apic();
    X2APIC.store(wide, Ordering::Relaxed);
    let mode = MODE_ENABLED | if wide { MODE_X2APIC } else { 0 };
    // SAFETY: the mode is one that CPUID offers.
    unsafe { msr::write(msr::APIC_BASE, msr::read(msr::APIC_BASE) | mode) };
    write(LINT0, MASKED);
    write(LINT1, DELIVER_NMI);
    write(ERROR, MASKED);
    write(TIMER, MASKED);
    write(SPURIOUS, 1 << 8 | u32::from(SPURIOUS_VECTOR));
    write(EOI, 0);
    if cpuid::has_kvm_pv_eoi() {
        let word = core::ptr::from_ref(&area::this().ends_itself) as u64;
        // SAFETY: KVM offers the register; the word is static, aligned to its size, in the
        // image, and changed by nobody else but `take_ends_itself`.
        unsafe { msr::write(msr::KVM_PV_EOI, (word - layout::IMAGE_OFFSET) | 1) };
    }
}

/// This CPU's number on the APIC bus.
pub fn id() -> u32 {
    if x2apic() { read(ID) } else { read(ID) >> 24 }
}

/// Acknowledges the interrupt in service.
#[inline(always)]
pub fn end_of_interrupt() {
    if !area::take_ends_itself() {
        write(EOI, 0);
    }
}

fn command(target: u32, what: u32) {
    if x2apic() {
        // The MSR write is not serialising: earlier stores must be visible to the target.
        core::sync::atomic::fence(Ordering::SeqCst);
        // SAFETY: the register exists and the command is one that the SDM defines.
        unsafe {
            msr::write(
                msr::X2APIC + COMMAND,
                u64::from(target) << 32 | u64::from(what),
            )
        };
        return;
    }
    write(COMMAND_HIGH, target << 24);
    write(COMMAND, what);
    wait_until_sent();
}

fn wait_until_sent() {
    while read(COMMAND) & PENDING != 0 {
        core::hint::spin_loop();
    }
}

/// A command whose shorthand says whom it is for. It leaves the half of the register alone that
/// holds the target, so that it does not disturb a [`command`] that is half written.
fn command_by_shorthand(what: u32) {
    if x2apic() {
        command(0, what);
    } else {
        wait_until_sent();
        write(COMMAND, what);
    }
}

/// Raises `vector` on the CPU with this APIC number.
pub fn send(target: u32, vector: u8) {
    command(target, ASSERT | u32::from(vector));
}

/// Raises an NMI on the CPU with this APIC number.
pub fn send_nmi(target: u32) {
    command(target, ASSERT | DELIVER_NMI);
}

/// Raises an NMI on every other CPU.
///
/// An NMI handler may call it, also one that interrupted [`send`].
pub fn send_nmi_to_others() {
    command_by_shorthand(ASSERT | ALL_OTHERS | DELIVER_NMI);
}

/// Raises `vector` on this CPU, when interrupts are open again. An NMI handler may call it, as
/// [`send_nmi_to_others`].
pub fn send_to_self(vector: u8) {
    command_by_shorthand(ASSERT | SELF | u32::from(vector));
}

/// Lets this CPU's performance counters raise NMIs. An NMI handler may call it.
pub fn connect_counters() {
    write(PERFORMANCE, DELIVER_NMI);
}

/// Lets them raise none; the state after a reset. An NMI handler may call it.
pub fn disconnect_counters() {
    write(PERFORMANCE, MASKED);
}

/// Resets a CPU so that it waits for [`send_startup`].
///
/// # Safety
/// The CPU is not running code of ours.
pub unsafe fn send_init(target: u32) {
    command(target, ASSERT | DELIVER_INIT);
}

/// Starts a reset CPU in real mode at `page << 12`.
///
/// # Safety
/// As for [`send_init`]; the page holds code for it.
pub unsafe fn send_startup(target: u32, page: u8) {
    command(target, ASSERT | DELIVER_STARTUP | u32::from(page));
}

/// Makes the timer raise `vector`, by TSC deadline or by its counter.
pub fn init_timer(vector: u8, by_deadline: bool) {
    if by_deadline {
        write(TIMER, TIMER_TSC_DEADLINE | u32::from(vector));
        // The mode must be set before the first deadline is (SDM 12.5.4.1).
        core::sync::atomic::fence(Ordering::SeqCst);
    } else {
        write(TIMER_DIVIDE, 0b1011);
        write(TIMER, u32::from(vector));
    }
}

/// Makes the timer, in the mode that it has, raise another vector.
pub fn set_timer_vector(vector: u8, by_deadline: bool) {
    let mode = if by_deadline { TIMER_TSC_DEADLINE } else { 0 };
    write(TIMER, mode | u32::from(vector));
    // Before a deadline that follows: a write to a page may come after one to an MSR.
    core::sync::atomic::fence(Ordering::SeqCst);
}

/// Lets the timer fire once, after `ticks` of its counter; 0 stops it.
pub fn arm_counter(ticks: u32) {
    write(TIMER_INITIAL, ticks);
}

/// What is left of the timer's counter.
pub fn counter() -> u32 {
    read(TIMER_CURRENT)
}

/// Lets the timer fire when the TSC reaches `tsc`; 0 stops it.
pub fn arm_deadline(tsc: u64) {
    // SAFETY: only used after `init_timer(_, true)`, hence where CPUID offers the register.
    unsafe { msr::write(msr::TSC_DEADLINE, tsc) };
}
