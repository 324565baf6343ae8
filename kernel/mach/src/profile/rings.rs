//! The rings' memory: contiguous, so that the host can read it by physical address.

use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use profile::{Ring, STACK_RECORD_WORDS_MAX};

use crate::cpu::{self, MAX_CPUS};
use crate::klog;
use crate::mem;
use crate::sync::{Once, Spin};

/// What one CPU writes to.
pub(super) struct Rings {
    pub samples: Ring<'static>,
    pub events: Ring<'static>,
}

const WORD_BYTES: usize = 8;
/// Room for some records of the longest kind, however small a ring is wished.
const WORDS_MIN: usize = 8 * STACK_RECORD_WORDS_MAX;

/// Each CPU's own, where the host reads them.
static RINGS: [Once<Rings>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];
/// Held by who makes them, once for all CPUs.
static MAKING: Spin<()> = Spin::new(());

/// This CPU's rings, once they are made. Takes no lock.
#[inline]
pub(super) fn of_this_cpu() -> Option<&'static Rings> {
    RINGS[cpu::id().index()].get()
}

/// Makes the rings of all CPUs that have none, and tells the host where they are; false if
/// memory is short.
pub(super) fn make(ring_bytes: usize) -> bool {
    let _alone = MAKING.lock();
    for (cpu, rings) in RINGS.iter().enumerate().take(cpu::count()) {
        if rings.get().is_none() && make_for(cpu, ring_bytes).is_none() {
            klog!("profile failed reason=memory");
            return false;
        }
    }
    true
}

fn make_for(cpu: usize, ring_bytes: usize) -> Option<()> {
    let words = (ring_bytes / WORD_BYTES).max(WORDS_MIN);
    let (samples, events) = (memory(words)?, memory(words)?);
    klog!(
        "profile ring cpu={cpu} samples={:#x} events={:#x} words={words} hertz={}",
        mem::physical_of(samples),
        mem::physical_of(events),
        crate::time::cycles_per_second(),
    );
    let rings = Rings {
        samples: Ring::new(samples)?,
        events: Ring::new(events)?,
    };
    RINGS[cpu].call_once(|| rings);
    Some(())
}

/// Words that are never given back. The heap takes what is larger than a page from contiguous
/// frames.
fn memory(words: usize) -> Option<&'static [AtomicU64]> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(words).ok()?;
    memory.resize_with(words, || AtomicU64::new(0));
    Some(memory.leak())
}
