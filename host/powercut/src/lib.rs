//! Power cuts: what a disk may hold afterwards, and whether it may.
//!
//! # Problem
//! "The data are there after a power cut" is a promise about moments that no test waits for. A disk has a
//! cache, writes it back in any order, and stops between two sectors.
//!
//! # Idea
//! Record every write and flush, and make from the record the images that a cut may leave, by
//! the thousand: every prefix, and between flushes subsets, other orders and torn writes ([`cuts`]).
//! Each is recovered and judged: its structure ([`image`], e2fsck), and its contents by an oracle that
//! knows what was promised when.
//!
//! ```text
//! files      all sequences of operations on the file system in memory
//! requests   random histories of requests to the queue of core/block
//! machine    programs in machines, whose disk QEMU has recorded
//! day        a day of simulated time, with faults
//! plants     bugs, one at a time: does all this find them?
//! ```
//! The harness is right if it finds what is wrong, and that is tested, too.
//!
//! Not here: how a machine is started (`tests/vm/src/power_cuts.rs`).
#![forbid(unsafe_code)]

pub mod cuts;
pub mod day;
pub mod drive;
pub mod files;
pub mod image;
pub mod machine;
pub mod medium;
pub mod plants;
pub mod random;
pub mod requests;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use medium::Medium;

/// A path in the temporary folder that nobody else has.
pub fn temporary(what: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("powercut-{}-{what}-{number}", std::process::id()))
}

/// What e2fsck has to say about an image that was unmounted; nothing is right.
pub fn e2fsck(medium: &Medium) -> Result<(), String> {
    let path = temporary("fsck");
    std::fs::write(&path, medium.flatten()).map_err(|error| error.to_string())?;
    let output = Command::new("e2fsck").arg("-fn").arg(&path).output();
    let _ = std::fs::remove_file(&path);
    let output = output.map_err(|error| format!("e2fsck: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && !text.contains("IGNORED") {
        true => Ok(()),
        false => Err(format!("e2fsck: {text}")),
    }
}
