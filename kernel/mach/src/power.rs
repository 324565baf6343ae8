//! Ending the machine: turning it off, resetting it, halting it.
//!
//! The host learns why from a line in the log: `exit status=N`, `restart` or `halt`. Then the
//! means that machines offer are tried, the most orderly first, each with time to work:
//!
//! - off: QEMU's `isa-debug-exit` where there is a hypervisor, ACPI's state S5, and where there
//!   is neither a reset: a small VMM takes that as an end.
//! - reset: ACPI's reset register, the keyboard controller, the chipset's reset control,
//!   a triple fault.
//!
//! Nothing here takes a lock or allocates, for a panic ends here too.

use core::sync::atomic::{AtomicBool, Ordering};

use acpi::{PowerOff, Register};
use arch::instr;
use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP};

use crate::time;

/// Where the host puts QEMU's exit device, and the value that means "look at the log".
const DEBUG_EXIT_PORT: u16 = 0x501;
const DEBUG_EXIT_VALUE: u8 = 0x10;
/// The keyboard controller (8042): bit 1 of its status says that it has a command to take.
const KEYBOARD: u16 = 0x64;
const KEYBOARD_BUSY: u8 = 1 << 1;
const KEYBOARD_RESET: u8 = 0xfe;
/// The chipset's reset control register (Intel ICH9, 13.7.5): choose a hard reset, then do it.
const RESET_CONTROL: u16 = 0xcf9;
const HARD_RESET: u8 = 1 << 1;
const RESET_NOW: u8 = 1 << 2;
/// Turns for which the keyboard controller may be busy, and firmware with its registers.
const TURNS_MAX: u32 = 1 << 16;

/// Whether CPUs that take an NMI are to halt for good. It is all or none of them.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Ends the machine with the program's exit status.
pub fn off(status: i32) -> ! {
    crate::log::line(format_args!("exit status={status}"));
    leave_qemu();
    if let Some(means) = crate::acpi::power_off() {
        enter_s5(means);
    }
    reset()
}

/// Starts the machine anew.
pub fn restart() -> ! {
    crate::log::line(format_args!("restart"));
    reset()
}

/// Stops all CPUs for good; the machine stays on.
pub fn halt() -> ! {
    crate::log::line(format_args!("halt"));
    stop_others();
    instr::halt_forever()
}

/// Ends the machine without a word. Nobody is there to turn it on again, so a machine
/// that QEMU's device does not end starts anew.
pub(crate) fn cut() -> ! {
    leave_qemu();
    reset()
}

/// Called by NMI: ends this CPU if another one panicked.
pub(crate) fn stop_if_asked() {
    if STOPPED.load(Ordering::Acquire) {
        arch::instr::halt_forever();
    }
}

/// Stops the other CPUs for good. Whoever comes second ends the machine.
pub(crate) fn stop_others() {
    if STOPPED.swap(true, Ordering::AcqRel) {
        cut();
    }
    arch::apic::send_nmi_to_others();
}

/// The port may be anything on a machine of metal.
fn leave_qemu() {
    if arch::cpuid::has_hypervisor() {
        // SAFETY: the write ends the machine or does nothing.
        unsafe { instr::out8(DEBUG_EXIT_PORT, DEBUG_EXIT_VALUE) };
    }
}

fn enter_s5(means: PowerOff) {
    match means {
        PowerOff::Fixed {
            controls,
            take_over,
        } => {
            if let (Some((control, _)), Some((port, value))) = (controls[0], take_over) {
                take_registers_over(control, port, value);
            }
            for (control, sleep_type) in controls.into_iter().flatten() {
                write16(control, PowerOff::fixed_value(read16(control), sleep_type));
            }
        }
        PowerOff::Reduced {
            control,
            sleep_type,
        } => write8(control, PowerOff::reduced_value(sleep_type)),
    }
    wait();
}

/// Firmware may serve the registers itself until it is told.
fn take_registers_over(control: Register, port: u16, value: u8) {
    let is_ours = || read16(control) & PowerOff::OURS != 0;
    if !is_ours() {
        // SAFETY: the port and the value are those that the firmware names for this.
        unsafe { instr::out8(port, value) };
        let _came = (0..TURNS_MAX).any(|_| is_ours());
    }
}

fn reset() -> ! {
    if let Some((register, value)) = crate::acpi::reset() {
        write8(register, value);
        wait();
    }
    // SAFETY: each of these resets the machine or does nothing.
    unsafe {
        let is_free = || instr::in8(KEYBOARD) & KEYBOARD_BUSY == 0;
        let _freed = (0..TURNS_MAX).any(|_| is_free());
        instr::out8(KEYBOARD, KEYBOARD_RESET);
        wait();
        instr::out8(RESET_CONTROL, HARD_RESET);
        instr::out8(RESET_CONTROL, HARD_RESET | RESET_NOW);
        wait();
        arch::tables::triple_fault()
    }
}

/// Gives a means the time to work: a tenth of a second.
fn wait() {
    let start = time::cycles();
    while time::cycles().wrapping_sub(start) < time::cycles_per_second() / 10 {
        core::hint::spin_loop();
    }
}

/// A register in memory, where the direct map has it.
fn mapped<T>(at: u64) -> Option<*mut T> {
    (at < BOOT_DIRECT_MAP_BYTES).then_some((DIRECT_MAP + at) as *mut T)
}

fn read16(register: Register) -> u16 {
    // SAFETY: the firmware names the register for this, and reading it changes nothing.
    unsafe {
        match register {
            Register::Port(port) => instr::in16(port),
            Register::Memory(at) => mapped::<u16>(at).map_or(0, |at| at.read_volatile()),
        }
    }
}

fn write16(register: Register, value: u16) {
    // SAFETY: the firmware names the register and the value for this.
    unsafe {
        match register {
            Register::Port(port) => instr::out16(port, value),
            Register::Memory(at) => {
                if let Some(at) = mapped::<u16>(at) {
                    at.write_volatile(value);
                }
            }
        }
    }
}

fn write8(register: Register, value: u8) {
    // SAFETY: the firmware names the register and the value for this.
    unsafe {
        match register {
            Register::Port(port) => instr::out8(port, value),
            Register::Memory(at) => {
                if let Some(at) = mapped::<u8>(at) {
                    at.write_volatile(value);
                }
            }
        }
    }
}
