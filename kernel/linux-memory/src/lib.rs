//! Linux's calls on address spaces: mappings, advice, nodes of memory, another process' memory,
//! and barriers for all threads of a process.
//!
//! Not here: shared memory of System V (`linux_ipc`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod advice;
mod membarrier;
mod memory;
mod mempolicy;
mod page_nodes;
mod remote;

use linux_abi::Entry;

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[
    advice::CALLS,
    membarrier::CALLS,
    memory::CALLS,
    mempolicy::CALLS,
    page_nodes::CALLS,
    remote::CALLS,
];
