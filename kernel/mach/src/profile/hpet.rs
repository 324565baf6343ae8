//! The high-precision event timer (IA-PC HPET specification 1.0a): timer 0, periodic.

use base::{PAGE_BYTES, PhysAddr};
use hal::Mmio;

use crate::sync::Lazy;
use crate::{acpi, mem};

const CAPABILITIES: usize = 0x00;
const CONFIGURATION: usize = 0x10;
const COUNTER: usize = 0xf0;
const TIMER: usize = 0x100;
const COMPARATOR: usize = 0x108;

const ENABLED: u64 = 1 << 0;
const INTERRUPTS: u64 = 1 << 2;
const PERIODIC: u64 = 1 << 3;
const CAN_BE_PERIODIC: u64 = 1 << 4;
/// The next write to the comparator sets the period as well.
const SET_PERIOD: u64 = 1 << 6;
const PIN_SHIFT: u32 = 9;
/// Pins below are those of the old devices, which others may want.
const FIRST_FREE_PIN: u32 = 16;
const FEMTOSECONDS: u64 = 1_000_000_000_000_000;

/// The machine has one, if any.
static REGISTERS: Lazy<Option<Mmio>> = Lazy::new(|| {
    let registers = mem::map_device(PhysAddr(acpi::hpet()?), PAGE_BYTES)?;
    let usable =
        registers.read64(CAPABILITIES) >> 32 != 0 && registers.read64(TIMER) & CAN_BE_PERIODIC != 0;
    usable.then_some(registers)
});

/// The pin of the I/O APIC that the timer can use; `None` if there is no such timer.
pub(super) fn pin() -> Option<u32> {
    let pins = (REGISTERS.as_ref()?.read64(TIMER) >> 32) as u32;
    let pin = pins.checked_ilog2()?;
    (pin >= FIRST_FREE_PIN).then_some(pin)
}

/// Raises the pin `hertz` times a second; false if there is no such timer.
pub(super) fn start(hertz: u32) -> bool {
    let (Some(registers), Some(pin)) = (REGISTERS.as_ref(), pin()) else {
        return false;
    };
    let femtoseconds = registers.read64(CAPABILITIES) >> 32;
    let period = FEMTOSECONDS / u64::from(hertz) / femtoseconds;
    let timer = INTERRUPTS | PERIODIC | SET_PERIOD | u64::from(pin) << PIN_SHIFT;
    registers.write64(CONFIGURATION, 0);
    registers.write64(COUNTER, 0);
    registers.write64(TIMER, timer);
    registers.write64(COMPARATOR, period);
    registers.write64(COMPARATOR, period);
    registers.write64(CONFIGURATION, ENABLED);
    true
}

/// Raises it no more.
pub(super) fn stop() {
    if let Some(registers) = REGISTERS.as_ref() {
        registers.write64(TIMER, 0);
        registers.write64(CONFIGURATION, 0);
    }
}
