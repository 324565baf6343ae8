//! `struct sietch_counter`: what happened to frames and in the stack, by name.

use std::ffi::c_int;

use crate::failure::number;
use crate::pointers::{Place, exclusive};
use crate::queue::Queue;

/// Of a name, with the zero that ends it.
const NAME_BYTES: usize = 56;

/// As the header has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// How often.
    pub value: u64,
    /// What.
    pub name: [u8; NAME_BYTES],
}

impl Counter {
    fn new(group: &str, name: &str, value: u64) -> Self {
        let mut bytes = [0; NAME_BYTES];
        let name = group.bytes().chain([b'.']).chain(name.bytes());
        let places = bytes.iter_mut().take(NAME_BYTES - 1);
        places.zip(name).for_each(|(place, byte)| *place = byte);
        Self { value, name: bytes }
    }
}

/// As the header says.
///
/// # Safety
/// **Queue**, **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sietch_counter_at(
    queue: *mut Queue,
    place: usize,
    counter: *mut Counter,
) -> c_int {
    // SAFETY: **Queue**, **Caller**.
    let (queue, to) = unsafe { (exclusive(queue), Place::at(counter)) };
    number(queue.and_then(|queue| {
        let to = to?;
        let found = queue.counter(place);
        Ok(found.map_or(0, |found| {
            to.write(found);
            1
        }))
    }))
}

impl Queue {
    fn counter(&mut self, place: usize) -> Option<Counter> {
        let (frames, card) = (self.queue.counts(), self.queue.port_counters());
        let card = card.into_iter().flat_map(|card| card.named());
        let stats = self.queue.stats();
        let of = |group| move |(name, value): (&str, u64)| Counter::new(group, name, value);
        let mut all = (frames.iter().map(of("frames")))
            .chain(card.map(of("card")))
            .chain(stats.counts.iter().map(of("stack")))
            .chain(stats.drops.iter().map(of("dropped")))
            .chain(stats.resets.iter().map(of("reset")));
        all.nth(place)
    }
}
