//! The I/O APICs: global system interrupts (GSI) to vectors.
//!
//! Which controllers there are comes from the MADT; where that is missing, PCs have one
//! at 0xfec00000 that starts at GSI 0.

use base::CpuId;

use crate::sync::Spin;
use crate::topology::IoApicEntry;
use crate::vector::Vector;
use arch::ioapic::{ACTIVE_LOW, DELIVER_NMI, IoApic, LEVEL, MASKED};

const CONTROLLERS_MAX: usize = 4;

/// How a pin says that it wants something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// By a change.
    Edge,
    /// By a level that lasts until the device is served.
    Level,
}

/// Which level of a pin is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polarity {
    /// Active when high.
    High,
    /// Active when low.
    Low,
}

#[derive(Clone, Copy)]
struct Controller {
    chip: IoApic,
    first_gsi: u32,
    pins: u32,
}

/// The machine's interrupt controllers.
static CONTROLLERS: Spin<[Option<Controller>; CONTROLLERS_MAX]> =
    Spin::new([None; CONTROLLERS_MAX]);

/// Takes over the controllers; all pins are masked.
pub(crate) fn init(entries: &[IoApicEntry]) {
    let mut controllers = CONTROLLERS.lock();
    for (slot, entry) in controllers.iter_mut().zip(entries) {
        // SAFETY: the firmware names the controller, its page is mapped uncached in the
        // direct map, and the lock keeps calls apart.
        let chip = unsafe { IoApic::new(arch::layout::DIRECT_MAP + entry.address) };
        let pins = chip.pins();
        (0..pins).for_each(|pin| chip.route(pin, 0, 0, MASKED));
        *slot = Some(Controller {
            chip,
            first_gsi: entry.first_gsi,
            pins,
        });
    }
}

fn with_pin(gsi: u32, act: impl FnOnce(IoApic, u32)) {
    let controllers = CONTROLLERS.lock();
    let holds = |c: &&Controller| gsi >= c.first_gsi && gsi - c.first_gsi < c.pins;
    if let Some(controller) = controllers.iter().flatten().find(holds) {
        act(controller.chip, gsi - controller.first_gsi);
    }
}

/// Lets `gsi` raise `vector` on `cpu`; the pin starts unmasked.
pub fn route(gsi: u32, vector: Vector, cpu: CpuId, trigger: Trigger, polarity: Polarity) {
    let level = u32::from(trigger == Trigger::Level) * LEVEL;
    let low = u32::from(polarity == Polarity::Low) * ACTIVE_LOW;
    let apic_id = crate::cpu::apic_id(cpu);
    with_pin(gsi, |chip, pin| {
        chip.route(pin, vector.number(), apic_id, level | low)
    });
}

/// From now on `gsi` interrupts `cpu`.
pub fn lead(gsi: u32, cpu: CpuId) {
    with_pin(gsi, |chip, pin| chip.lead(pin, crate::cpu::apic_id(cpu)));
}

/// Lets interrupt `number` of the ISA bus raise `vector` on `cpu`, as the firmware says that it
/// arrives; the pin starts unmasked.
pub fn route_isa(number: u8, vector: Vector, cpu: CpuId) {
    if let Some(pin) = crate::topology::get().isa(number) {
        let trigger = match pin.is_level {
            true => Trigger::Level,
            false => Trigger::Edge,
        };
        let polarity = match pin.is_active_low {
            true => Polarity::Low,
            false => Polarity::High,
        };
        route(pin.gsi, vector, cpu, trigger, polarity);
    }
}

/// Lets each edge of `gsi` raise an NMI on `cpu`.
pub(crate) fn route_nmi(gsi: u32, cpu: CpuId) {
    let apic_id = crate::cpu::apic_id(cpu);
    with_pin(gsi, |chip, pin| chip.route(pin, 0, apic_id, DELIVER_NMI));
}

/// Keeps `gsi` quiet.
pub fn mask(gsi: u32) {
    with_pin(gsi, |chip, pin| chip.set_masked(pin, true));
}

/// Lets `gsi` speak again.
pub fn unmask(gsi: u32) {
    with_pin(gsi, |chip, pin| chip.set_masked(pin, false));
}
