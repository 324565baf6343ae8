//! What units refused: counted, and said in the log at a bounded rate.
//!
//! A unit's interrupt only masks itself; the records are read [`LOOK_AFTER`] later, and then it
//! is unmasked. So a device that errs all the time costs a hundred looks a second, each of
//! as many records as the unit has, and no more.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{CpuId, Duration, Instant};
use hal::pci::MsiMessage;
use mach::sync::Spin;
use mach::{irq, klog};
use probes::RateLimit;
use sched::timer::{self, Expire, Target};
use vtd::Fault;

use crate::MACHINE;
use crate::machine::{Machine, Remapper};

/// From a unit's interrupt to the look at what it refused.
const LOOK_AFTER: Duration = Duration::from_millis(10);
/// Lines in the log: so many at once, in so many nanoseconds.
const LINES: u32 = 8;
const WINDOW_NS: u64 = 10_000_000_000;

/// What is known of the requests that a unit refused.
pub struct Refusals {
    /// Made at boot: an interrupt finds memory short, too.
    look: Arc<Look>,
    limit: Spin<RateLimit>,
    /// Of functions that are not known.
    strange: AtomicU64,
    /// How often some were not recorded.
    lost: AtomicU64,
}

impl Refusals {
    /// None yet, of the unit at this place.
    pub fn new(place: usize) -> Self {
        Self {
            look: Arc::new(Look(place)),
            limit: Spin::new(RateLimit::new(LINES, WINDOW_NS)),
            strange: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Requests of functions that are not known.
    pub fn strange(&self) -> u64 {
        self.strange.load(Relaxed)
    }

    /// Looks at which some had not been recorded.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    fn say(&self, fault: &Fault, now: Instant) {
        let Some(unsaid) = self.limit.lock().say(now.as_nanos()) else {
            return;
        };
        let (source, at) = (fault.source, fault.address);
        let access = if fault.is_write { "write" } else { "read" };
        klog!(
            "stray device={source} {access}={at:#x} unsaid={unsaid} why={}",
            fault.reason
        );
    }
}

/// The look at a unit, by its place.
struct Look(usize);

impl Expire for Look {
    fn expire(self: Arc<Self>, now: Instant) {
        let machine = MACHINE.get();
        if let Some((machine, remapper)) = machine.and_then(|all| Some((all, all.unit(self.0)?))) {
            look(machine, remapper, now);
        }
    }
}

/// Has units interrupt when they refuse something.
pub fn start(machine: &Machine) {
    for (place, remapper) in machine.units() {
        let Some(vector) = irq::allocate(on_interrupt, place) else {
            klog!("iommu: no interrupt is left for what is refused");
            return;
        };
        let (address, data) = irq::plain_message(vector, CpuId(0));
        let message = MsiMessage { address, data };
        remapper.unit.lock().lead_faults(message);
        // What is recorded already raises no interrupt.
        look(machine, remapper, mach::time::now());
    }
}

fn on_interrupt(place: usize) {
    let Some(remapper) = MACHINE.get().and_then(|machine| machine.unit(place)) else {
        return;
    };
    remapper.unit.lock().mask_faults(true);
    let deadline = mach::time::now() + LOOK_AFTER;
    timer::add(deadline, Target::Call(remapper.refusals.look.clone()));
}

/// Reads what a unit refused, and has it interrupt again.
fn look(machine: &Machine, remapper: &Remapper, now: Instant) {
    let refusals = &remapper.refusals;
    let mut unit = remapper.unit.lock();
    let taken = unit.take_faults(&mut |fault| {
        match machine.find(fault.source) {
            Some(function) => function.note(&fault),
            None => _ = refusals.strange.fetch_add(1, Relaxed),
        }
        refusals.say(&fault, now);
    });
    if taken.lost {
        refusals.lost.fetch_add(1, Relaxed);
    }
    unit.mask_faults(false);
}
