//! Vectors for the interrupts of programs' devices.
//!
//! A vector is bound once and for all, so these are bound to places of a table, and the places
//! are lent. Whoever has the last interrupt of a device that is being closed may, at worst, be told of
//! one that was on its way: an eventfd that counts one too many.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use hal::pci::{MsiMessage, PciAddress};
use mach::irq::{self, Vector};
use mach::sync::Once;

use crate::trigger::{Trigger, TriggerSlot};

/// Interrupts of all programs' devices.
const VECTORS_MAX: usize = 64;

struct Place {
    is_taken: AtomicBool,
    /// `None` if the machine has no more.
    vector: Once<Option<Vector>>,
    trigger: TriggerSlot,
}

/// Interrupts are the machine's, and a handler knows no more than its place.
static PLACES: [Place; VECTORS_MAX] = [const {
    Place {
        is_taken: AtomicBool::new(false),
        vector: Once::new(),
        trigger: TriggerSlot::new(),
    }
}; VECTORS_MAX];

/// Interrupts that led nowhere.
static STRAYS: AtomicU64 = AtomicU64::new(0);

/// How many led nowhere, of all programs' devices.
pub fn strays() -> u64 {
    STRAYS.load(Relaxed)
}

fn on_interrupt(place: usize) {
    let place = PLACES.get(place);
    if !place.is_some_and(|place| place.trigger.signal()) {
        STRAYS.fetch_add(1, Relaxed);
    }
}

/// A vector that is lent until this is dropped. By then nothing sends it.
pub struct Claim {
    place: &'static Place,
    vector: Vector,
}

impl Claim {
    /// A free vector; `None` if there is none.
    pub fn new() -> Option<Self> {
        PLACES.iter().enumerate().find_map(|(number, place)| {
            if place.is_taken.swap(true, SeqCst) {
                return None;
            }
            let bind = || irq::allocate(on_interrupt, number);
            let vector = *place.vector.call_once(bind);
            if vector.is_none() {
                place.is_taken.store(false, SeqCst);
            }
            Some(Self {
                place,
                vector: vector?,
            })
        })
    }

    /// Says what the interrupt counts up.
    pub fn set(&self, trigger: Trigger) {
        self.place.trigger.set(Some(trigger));
    }

    /// What a function sends for it, to the CPU that runs this.
    pub fn message(&self, function: PciAddress) -> MsiMessage {
        let (address, data) = irq::msi_message(function, self.vector, mach::cpu::id());
        MsiMessage { address, data }
    }

    /// As if the device had sent it.
    pub fn signal(&self) {
        self.place.trigger.signal();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.place.trigger.set(None);
        self.place.is_taken.store(false, SeqCst);
    }
}
