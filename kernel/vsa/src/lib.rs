//! Areas of disks that programs own: `/dev/vsa/NAME`, and a queue to each that takes no call while it is loaded.
//!
//! # Problem
//! A program that is to reach its blocks without a call writes what it likes into memory that both share, at any
//! moment, and whoever administrates the disk takes blocks away from it at any moment. No block and no byte outside of what is its own
//! may be touched, and nobody waits for it.
//!
//! # Idea
//! `core/vsa` has the catalogue, the map from an area's block to a disk's, and both ends of the ring. Here they are
//! bound to disks, descriptors and interrupts:
//!
//! ```text
//! control.rs   /dev/vsa/control: lines              file.rs   /dev/vsa/NAME: plain bytes (plain.rs), ring, bell, memory
//!    └─ catalogues.rs  catalogues on stores            └─ ring.rs     submissions to requests, ends to completions
//!          ├─ store.rs  a store as the catalogue sees it     └─ pending.rs  rings that look for more when requests have ended
//!          └─ area.rs   an area that is in use: its map, who is inside, the fence
//! ```
//!
//! # Who runs
//! The thread that rings the bell takes submissions, a batch at a time, and hands them to the disk's queue with one doorbell. While a
//! request of a ring is under way the softirq that takes its end also takes what was submitted since: a loaded ring needs no
//! call. When nothing is under way the ring says that the driver sleeps, and looks once more.
//!
//! # Invariants
//! - **Translated**: what a request reaches came out of the area's [`vsa::Map`] of then, under the lock that takes submissions.
//! - **Inside**: whoever uses a map counts in its area from before the look at it until the device is done ([`area`]).
//!   Blocks are given back only behind the fence: no map is given out, and nobody is inside.
//! - **Pinned**: a request keeps its ring, and that the pages; a program's death takes none of them from the device.
//!
//! # The end
//! A ring ends with its descriptor's last copy, whoever has it: it takes nothing more, also if it is still mapped; requests under way end by
//! themselves. A descriptor may be passed
//! on (SCM_RIGHTS) and is a right of its own then. After fork(2) both processes have it, and one ring: it is for the one that made it,
//! as its memory is not the child's.
//!
//! # Bounds
//! One ring for each area, 512 of the machine; 4096 entries. Pages count for the user (RLIMIT_MEMLOCK) and
//! are a quarter of memory at most. A turn takes 64 submissions, then others have theirs.
//!
//! # Lock order
//! The catalogues' list, a catalogue (both sleep); a ring's taking half, a disk's lane, a ring's putting half. The list of pending
//! rings and an area's state are innermost.
//!
//! Not here: figures of partitions for what rings do.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod area;
mod catalogues;
mod control;
mod failure;
mod file;
mod nodes;
mod pending;
mod plain;
mod ring;
mod store;

use vfs::device_parts;
use vfs::devices::{self, Device};

pub use catalogues::attach_all;

/// Once at boot, before disks are found.
pub fn init() {
    kernel_block::after_ends(pending::go_on);
    kernel_block::look_by(attach_all);
    register();
}

/// Claims the numbers.
fn register() {
    devices::register(Device {
        name: "vsa/control",
        major: nodes::MAJOR,
        minors: (0, 0),
        mode: 0o666,
        open: |_, _| control::open(),
    });
    devices::register(Device {
        name: "",
        major: nodes::MAJOR,
        minors: (1, nodes::MINOR_LAST),
        mode: 0,
        open: |number, _| catalogues::open(device_parts(number).1),
    });
}
