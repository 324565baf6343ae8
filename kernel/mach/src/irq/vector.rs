//! The table from vectors to handlers.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::CpuId;

use crate::cpu::{Own, own};
use crate::sync::Once;
use crate::vector::Vector;

/// Vectors below belong to the processor's exceptions.
const FIRST: u8 = 0x20;
/// Vectors from here on are the kernel's own.
const FIRST_RESERVED: u8 = Vector::KICK.0;
const SLOTS: usize = 256 - FIRST as usize;

#[derive(Clone, Copy)]
struct Handler {
    run: fn(usize),
    arg: usize,
}

/// A vector means the same on all CPUs.
static HANDLERS: [Once<Handler>; SLOTS] = [const { Once::new() }; SLOTS];
/// Interrupts that each CPU has taken. Made before it runs: its first one may end a nap, which must not allocate.
static TAKEN: Own<AtomicU64> = own!(AtomicU64, AtomicU64::new(0));

/// Before `cpu` is started.
pub(crate) fn add_cpu(cpu: CpuId) {
    TAKEN.prepare(cpu);
}
/// The first that nobody has.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST as usize);

/// Takes a free vector and binds it to `handler(arg)`; `None` when all are taken.
pub fn allocate(handler: fn(usize), arg: usize) -> Option<Vector> {
    let take = |next| (next < FIRST_RESERVED as usize).then_some(next + 1);
    let number = NEXT
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        .ok()?;
    let vector = Vector(number as u8);
    bind(vector, handler, arg);
    Some(vector)
}

/// Binds one of the kernel's own vectors; once.
pub(crate) fn bind(vector: Vector, run: fn(usize), arg: usize) {
    HANDLERS[usize::from(vector.0 - FIRST)].call_once(|| Handler { run, arg });
}

/// Interrupts that all CPUs have taken.
pub fn count() -> u64 {
    TAKEN
        .iter()
        .map(|taken| taken.load(Ordering::Relaxed))
        .sum()
}

/// Runs the handler of vector `number` and acknowledges the interrupt.
#[inline]
pub(crate) fn dispatch(number: u8) {
    if number == arch::apic::SPURIOUS_VECTOR {
        return;
    }
    TAKEN.get().fetch_add(1, Ordering::Relaxed);
    if let Some(handler) = HANDLERS
        .get(usize::from(number - FIRST))
        .and_then(Once::get)
    {
        (handler.run)(handler.arg);
    }
    arch::apic::end_of_interrupt();
}
