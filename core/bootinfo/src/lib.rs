//! What a boot loader leaves: which memory there is, and what it loaded where.
//!
//! The problem: each loader tells it in a form of its own, and firmware's maps of memory
//! overlap, touch, come in no order and end in the middle of a page. A map that is believed
//! blindly gives the allocator memory that a device or the firmware uses; a length that is
//! believed blindly leads out of what the loader wrote.
//!
//! The idea: [`MemoryMap`] collects regions as they are listed and answers with what is
//! certainly free: usable by some region and denied by none. [`multiboot2`] reads GRUB's form
//! from a slice, with every length checked. Fixed sizes, for all this runs before any heap.
//!
//! Not here: reading physical memory, PVH's and Linux's forms, which are structures at
//! addresses (the machine layer).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod map;
pub mod multiboot2;

#[cfg(test)]
mod tests;

pub use map::{MemoryMap, REGIONS_MAX, RESERVED_MAX, Region, RegionKind, Span};
