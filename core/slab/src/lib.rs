//! The heap below `alloc`: objects of a few sizes, cut from frames.
//!
//! The problem: a kernel allocates small objects on every request and can not afford a
//! lock, a search or a header for each.
//!
//! The idea: sizes are rounded up to [`CLASSES`] classes. Each CPU has a [`LocalHeap`]
//! with one stack of free objects per class, so an allocation is a pop and a release a
//! push. Stacks that run empty or grow too long exchange chains of objects
//! with the [`Depot`] that all CPUs share, which cuts slabs from pages when it has no
//! chain. Nothing is stored beside an object: the caller of `free` names the class
//! again (Rust's allocator interface knows the layout).
//!
//! Invariants (cited by the `SAFETY` comments):
//! - **Free**: an object on a list belongs to that list alone, is as long as its class
//!   and aligned to 16 bytes; its first word links the list, its second the depot's
//!   list of chains.
//! - **Local**: a `LocalHeap` is used through `&mut`, by one CPU, never from within
//!   itself (the kernel is not preempted and its interrupt handlers wait their turn).
//!
//! Lock order: the depot's lock is taken with no list half changed; inside it only the
//! lock of the frame allocator.
//!
//! Not here: large sizes (they go to the frame allocator as extents) and giving slabs
//! back: the heap keeps what its busiest moment needed.
#![no_std]

#[cfg(test)]
extern crate std;

mod class;
mod depot;
mod list;
mod local;

#[cfg(test)]
mod tests;

pub use class::{CLASSES, Class, LARGEST};
pub use depot::{Depot, PageSource};
pub use local::LocalHeap;
