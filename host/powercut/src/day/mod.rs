//! A day of a machine with a bad disk, in simulated time: `powercut day SEED`.
//!
//! # Problem
//! A test that cuts the power after each of three operations sees no log that went round for hours, no flusher
//! that comes while something fails, no second fault on top of the first.
//!
//! # Idea
//! `core/ext4` on the queue of `core/block` on its simulated disk ([`rig`]); pages that are brought down
//! by age, pressure and fsync as the kernel does it ([`machine`]); a program that does something at random
//! times ([`life`], [`program`]). Reads, writes and flushes fail, commands never end, the disk vanishes, the power
//! goes: in the middle of a request, during recovery, or after a volume stopped. Each time the image is recovered,
//! its structure judged, and its contents by an oracle that outlives all of it ([`oracle`]). A failed flush
//! may have emptied the disk's cache.
//!
//! The clock is an argument: a day takes as long as its operations.
//!
//! Not here: programs that run at once, and mapped pages.

mod life;
mod machine;
mod oracle;
mod pages;
mod program;
mod rig;

pub use life::live;

/// Each happens once in so many commands of the disk.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// A read fails.
    pub read: usize,
    /// A write fails, and writes nothing.
    pub write: usize,
    /// A flush fails, and may have lost all that it was to bring out.
    pub flush: usize,
    /// A command never ends.
    pub hang: usize,
    /// The disk answers no more until the machine is started anew.
    pub vanish: usize,
    /// The power goes.
    pub cut: usize,
}

impl Faults {
    /// All of them, some hundred times a day.
    pub const SOME: Self = Self {
        read: 4000,
        write: 8000,
        flush: 400,
        hang: 4000,
        vanish: 40_000,
        cut: 3000,
    };
}

/// What a day was like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Operations that programs called.
    pub operations: u64,
    /// Those that failed, however: no room counts.
    pub refused: u64,
    /// fsync, fdatasync and sync that returned success.
    pub promises: u64,
    /// fsync that told of a failure.
    pub told: u64,
    /// Volumes that changed nothing any more.
    pub stopped: u64,
    /// Images that were judged.
    pub images: u64,
    /// Those that e2fsck saw.
    pub checked: u64,
    /// Mounts that failed because of a fault.
    pub mounts_failed: u64,
    /// Clean unmounts.
    pub unmounts: u64,
    /// What the disk did.
    pub seen: rig::Seen,
}
