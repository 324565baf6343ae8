//! The I/O APICs: global system interrupts (GSI) to vectors.
//!
//! Which controllers there are comes from the MADT; where that is missing, PCs have one
//! at 0xfec00000 that starts at GSI 0.

use base::CpuId;

use super::remap::{self, Destination, Source};
use crate::sync::Spin;
use crate::topology::IoApicEntry;
use crate::vector::Vector;
use arch::ioapic::{ACTIVE_LOW, DELIVER_NMI, IoApic, LEVEL, MASKED};

const CONTROLLERS_MAX: usize = 4;
/// The entry of an IOMMU's table for NMIs: their number as an exception, which is no vector.
const NMI: u8 = 2;
const VECTOR: u32 = 0xff;

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

/// How many controllers there are.
pub fn controllers() -> usize {
    CONTROLLERS.lock().iter().flatten().count()
}

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
        set(chip, pin, u32::from(vector.number()) | level | low, apic_id);
    });
}

/// Sets the entry of a pin, by way of an IOMMU's where that remaps.
fn set(chip: IoApic, pin: u32, flags: u32, apic_id: u32) {
    let is_nmi = flags & DELIVER_NMI != 0;
    let vector = if is_nmi { NMI } else { (flags & VECTOR) as u8 };
    let to = Destination {
        vector,
        is_nmi,
        is_level: flags & LEVEL != 0,
        apic_id,
    };
    let kept = flags & (LEVEL | ACTIVE_LOW | MASKED);
    match remap::lead(Source::Pins, to) {
        Some(_) => chip.route_remapped(pin, vector, vector, kept),
        None => chip.route(pin, (flags & VECTOR) as u8, apic_id, flags & !VECTOR),
    }
}

/// Sets the entries of all pins that are routed by way of an IOMMU.
pub(super) fn lead_anew() {
    for controller in CONTROLLERS.lock().iter().flatten() {
        for pin in 0..controller.pins {
            let (flags, apic_id) = controller.chip.entry(pin);
            if flags & (VECTOR | DELIVER_NMI) != 0 {
                set(controller.chip, pin, flags, apic_id);
            }
        }
    }
}

/// From now on `gsi` interrupts `cpu`.
pub fn lead(gsi: u32, cpu: CpuId) {
    let apic_id = crate::cpu::apic_id(cpu);
    with_pin(gsi, |chip, pin| {
        let (flags, _) = chip.entry(pin);
        let to = Destination {
            vector: (flags & VECTOR) as u8,
            is_nmi: false,
            is_level: flags & LEVEL != 0,
            apic_id,
        };
        if remap::lead(Source::Pins, to).is_none() {
            chip.lead(pin, apic_id);
        }
    });
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
    with_pin(gsi, |chip, pin| set(chip, pin, DELIVER_NMI, apic_id));
}

/// Keeps `gsi` quiet.
pub fn mask(gsi: u32) {
    with_pin(gsi, |chip, pin| chip.set_masked(pin, true));
}

/// Lets `gsi` speak again.
pub fn unmask(gsi: u32) {
    with_pin(gsi, |chip, pin| chip.set_masked(pin, false));
}
