//! Vectors for the interrupts of programs' devices.
//!
//! A vector is bound once and for all, so these are bound to places of a table, and the places
//! are lent. Whoever has the last interrupt of a device that is being closed may, at worst, be told of
//! one that was on its way: an eventfd that counts one too many.
//!
//! Behind an IOMMU that remaps interrupts a message follows the threads that it wakes ([`vfio::Steering`]).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use base::CpuId;
use hal::pci::{MsiMessage, PciAddress};
use mach::irq::{self, Vector};
use mach::sync::{Once, Spin};
use vfio::Steering;

use crate::trigger::{Trigger, TriggerSlot};

/// Interrupts of all programs' devices.
const VECTORS_MAX: usize = 64;

struct Place {
    is_taken: AtomicBool,
    /// `None` if the machine has no more.
    vector: Once<Option<Vector>>,
    trigger: TriggerSlot,
    /// The function that was told to send it, unless that would have to be told of another CPU as well.
    route: Spin<Option<Route>>,
}

struct Route {
    function: PciAddress,
    steering: Steering,
}

/// Interrupts are the machine's, and a handler knows no more than its place.
static PLACES: [Place; VECTORS_MAX] = [const {
    Place {
        is_taken: AtomicBool::new(false),
        vector: Once::new(),
        trigger: TriggerSlot::new(),
        route: Spin::new(None),
    }
}; VECTORS_MAX];

/// Interrupts that led nowhere.
static STRAYS: AtomicU64 = AtomicU64::new(0);

/// How many led nowhere, of all programs' devices.
pub fn strays() -> u64 {
    STRAYS.load(Relaxed)
}

fn on_interrupt(place: usize) {
    if !PLACES.get(place).is_some_and(Place::on_interrupt) {
        STRAYS.fetch_add(1, Relaxed);
    }
}

impl Place {
    /// False if it led nowhere.
    fn on_interrupt(&self) -> bool {
        let (led, woken_on) = sched::woken_elsewhere(|| self.trigger.signal());
        self.follow(woken_on);
        led
    }

    fn follow(&self, woken_on: Option<CpuId>) {
        let (mut slot, vector) = (self.route.lock(), self.vector.get().copied().flatten());
        if let (Some(route), Some(vector)) = (&mut *slot, vector)
            && let Some(cpu) = route.steering.note(woken_on)
            && !irq::lead_again(route.function, vector, cpu)
        {
            *slot = None;
        }
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
        let here = mach::cpu::id();
        let steering = Steering::new(here);
        let mut route = self.place.route.lock();
        *route = Some(Route { function, steering });
        let (address, data) = irq::msi_message(function, self.vector, here);
        MsiMessage { address, data }
    }

    /// The CPU to which it goes, if it may go to another one.
    pub fn cpu(&self) -> Option<CpuId> {
        let route = self.place.route.lock();
        route.as_ref().map(|route| route.steering.goes_to())
    }

    /// As if the device had sent it.
    pub fn signal(&self) {
        self.place.trigger.signal();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.place.trigger.set(None);
        *self.place.route.lock() = None;
        self.place.is_taken.store(false, SeqCst);
    }
}
