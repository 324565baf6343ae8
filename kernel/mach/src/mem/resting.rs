//! Memory that the kernel has mapped and nobody uses: stacks, and places for long objects.
//!
//! It serves the next who wants such memory. To take its frames all CPUs must be interrupted,
//! so that is done only when much of it rests, or memory is short.

use super::{stack, vmalloc};

/// Whether so much rests that [`trim`] is worth the interruption of all CPUs.
#[inline]
pub fn pile_up() -> bool {
    stack::pile_up() || vmalloc::pile_up()
}

/// Bytes that rest.
pub fn resting_bytes() -> u64 {
    stack::resting_bytes() + vmalloc::resting_bytes()
}

/// Gives back what rests, some at a time with `pause` between. The caller holds no lock.
pub fn trim(pause: &mut dyn FnMut()) {
    stack::trim(pause);
    vmalloc::trim(pause);
}
