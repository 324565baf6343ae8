//! /proc and /sys: what all parts of the kernel show of themselves as files.
//!
//! The problem: a file here may tell about anything, from the scheduler to the last
//! socket, so whoever writes one needs all of them. Below, nobody needs this crate: it
//! stands on top, reads what the others publish, and gives the file system's registry
//! ([`vfs::kinds`]) two kinds at boot. The files' machinery, text that is made
//! while it is read, is [`vfs::pseudo`]'s.
//!
//! Invariants: a text takes a piece of memory however long it gets; no lock is held from
//! one piece to the next; whoever reads about another program is asked for the right to
//! (`proc::guard`).
//!
//! Not here: who may mount and where (`vfs::mount`), and what the numbers mean
//! (the modules that count them).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod proc;
pub mod sys;

use vfs::kinds::{self, Kind};

/// Makes `proc` and `sysfs` known to mount(2). Once, before the root is filled.
pub fn init() {
    for (name, make) in [
        ("proc", proc::make as kinds::Make),
        ("sysfs", sys::make as kinds::Make),
    ] {
        kinds::register(Kind {
            name,
            nodev: true,
            options: &[],
            make,
        });
    }
    kernel_block::show_by(sys::block::refresh);
}
