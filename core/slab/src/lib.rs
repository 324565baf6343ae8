//! Objects of a few sizes, cut from pages: the heap of the kernel and of `libumem.so`.
//!
//! The problem: programs and kernels allocate small objects all the time and can afford
//! neither a lock, a search nor a header for each.
//!
//! The idea is Bonwick's, in three layers:
//!
//! 1. Sizes are rounded up to [`CLASSES`] classes. Whoever runs alone (a CPU of the kernel,
//!    a thread of a program) has a [`LocalHeap`]: one [`Magazine`] per class, a bounded
//!    stack of pointers to free objects. An allocation is a pop, a release is a push;
//!    neither touches the object.
//! 2. Magazines that run empty or full exchange batches with the class's [`Depot`], which
//!    all share under a lock. The depot has a magazine of its own, its stock, so most
//!    exchanges copy pointers and nothing else: objects freed far from home return in
//!    batches.
//! 3. Below the stock are the [`Slab`]s: runs of pages cut into objects, with one bit per
//!    free object. A slab whose objects are all free goes back to where its pages came
//!    from. The bits also find an object that is freed twice.
//!
//! An [`ObjectCache`] is the same depot for objects of one type that stay constructed while
//! they are free.
//!
//! Nothing is stored beside an object. Who frees one knows its class: from the layout in
//! the kernel, from a map of addresses in `libumem`.
//!
//! Invariants (cited by the `SAFETY` comments):
//! - **Free**: an object in a magazine, or whose bit is set in its slab, belongs to that
//!   place alone.
//! - **Lent**: the storage of a magazine is used by that magazine alone while it is lent;
//!   `floor <= top <= ceiling`, and the rounds in `floor..top` are initialised.
//! - **Linked**: a slab is on the list of its depot exactly while it has free objects, and
//!   the depot's owner reaches it by `&mut`.
//!
//! Lock order: the caller's lock around a depot, then whatever its [`SlabSource`] takes.
//!
//! Not here: locks, threads, where pages come from, sizes above [`LARGEST`].
#![no_std]

#[cfg(test)]
extern crate std;

mod cache;
mod class;
mod depot;
mod geometry;
mod local;
mod magazine;
mod slab;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use cache::{Construct, ObjectCache};
pub use class::{CLASSES, Class, LARGEST};
pub use depot::{Depot, DepotStats, SlabSource};
pub use geometry::Geometry;
pub use local::LocalHeap;
pub use magazine::{Magazine, Round};
pub use slab::{BadFree, Slab};
