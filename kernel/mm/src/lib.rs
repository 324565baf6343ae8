//! Memory of programs: address spaces, what they map, and every copy from and to them.
//!
//! The parts stand in a line, each below the next:
//!
//! - [`garbage`]: pages that nobody needs any more, given back some at a time
//! - [`space`]: address spaces, areas, memory objects, faults
//! - [`pinned`]: pages that are kept for devices and rings, counted
//! - [`shared_pages`]: memory in which the kernel and a program both work
//! - [`balloon`]: frames that the host has back for a while
//! - [`reclaim`]: what happens when memory runs out
//! - [`user`]: the only door to the running program's memory
//! - [`io`]: where bytes of a read go, and where bytes of a write come from
//!
//! Files and processes stand above. A file is a [`MemoryObject`] here and something that an area
//! keeps ([`MappedFile`]); of programs three questions are asked, which whoever has them answers
//! (`user::find_space_by`, [`find_spaces_by`], `reclaim::ask_of`).
//!
//! Lock order: a memory object's locks are taken with no address space locked, but for those that
//! [`MemoryObject::ready_page`] takes, which never wait.
//!
//! Not here: page tables and frames (`mach::mem`), the map of areas (`core/vma`), and how much a
//! user may lock or map (`cred`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod balloon;
pub mod garbage;
pub mod io;
pub mod pinned;
pub mod reclaim;
pub mod refusal;
pub mod shared_pages;
pub mod space;
pub mod user;

pub use space::*;
