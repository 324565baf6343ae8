//! `libumem.so`: the malloc family for any Linux program, by `LD_PRELOAD`.
//!
//! The problem: malloc is called more often than anything else, from any thread, before
//! anything is set up and after everything was torn down, and `free` is told an address
//! and nothing else.
//!
//! The idea: the layers are those of `core/slab`, as in the kernel. Each thread has a
//! `LocalHeap` in its thread-local storage (`thread`), so the usual malloc is a pop and
//! the usual free a push: no lock, no atomic, no call. Slabs are spans of units (16 KiB) in
//! segments of 4 MiB (`segment`, `spans`). One byte for each unit of the address space
//! says which class lives there (`map`): that is all that `free` needs. Everything above
//! half a segment is mapped by itself (`large`). What lies idle returns to the system after
//! a second (`decay`). An object that is freed twice ends the program at once (`mark`).
//!
//! A slow path is where anything else happens: first use by a thread, exchange with the
//! depots (`depots`), large sizes, bad pointers. All zeros is a valid state of every global
//! and of every thread, whose first malloc takes the slow path by itself; so nothing must be
//! initialised before the first call.
//!
//! Invariants (cited by the `SAFETY` comments):
//! - **Own**: a thread's heap is used by its thread alone; no function that holds a
//!   reference to it calls back into malloc.
//! - **Map**: a unit has a class in the map exactly while it belongs to a slab of that
//!   class; so an address with a class lies in a segment.
//! - **Header**: a segment starts at a multiple of its size with its header, which is
//!   written under the lock of the spans; a slab's description in it belongs to the depot
//!   that has the slab.
//! - **Metadata**: what `meta` gives is never given twice and never returned.
//!
//! Lock order: a cache of the program's (`caches`), a depot's lock, then that of the spans, then that of the metadata. Of
//! the program's code only constructors and destructors run under a lock, that of their cache. `fork` takes all of them (`fork`).
//!
//! Not here: what an object is, magazines and slabs: see `core/slab`.

mod abi;
mod api;
mod caches;
mod debug;
mod decay;
mod depots;
mod ending;
mod fit;
mod fork;
mod large;
mod lock;
mod map;
mod mark;
mod meta;
mod options;
mod plain;
mod program_break;
mod realloc;
mod report;
mod segment;
mod settings;
mod sizes;
mod slow;
mod spans;
mod stats;
mod storage;
mod sys;
mod thread;
