//! Disks as files: /dev/vda, and /dev/vda1 for a partition of it.
//!
//! ```text
//! file.rs  an open disk: positions, ends, fsync     requests.rs  what ioctl(2) asks
//!    ├── direct.rs     O_DIRECT: the program's own pages are told to the device
//!    └── buffered.rs   everything else, by way of pages of the kernel's
//!    lent.rs  requests of programs' rings, whose memory is kept for many of them, and ends.rs how they hear
//!          └── transfer.rs   pages are told to the device, or copied where an IOMMU translates
//!                └── bio.rs, disk.rs   a request with its memory goes to a queue; its thread sleeps until
//!                      │               it is over, or whoever began it is told (`vfs::file::transfer`)
//!                      └── block::Queue, block::Channel   the device's driver
//! ```
//!
//! The thread that asks sends by itself, to the queue of its CPU. The interrupt's softirq takes what has
//! ended and wakes the thread whose request it is, and no other. The thread itself watches
//! the clock: when its request takes too long it stops the device and starts it anew
//! ([`recovery`]).
//!
//! Nothing is cached: a write has reached the device when it returns, and fsync(2) empties the
//! device's own cache. A write that begins or ends inside of a block reads the block first, and such
//! writes exclude all other buffered ones of the disk. Direct writes exclude nothing.
//!
//! Lock order: `buffered`, then `control`, then spin locks: a lane, then a request's outcome.
//!
//! Not here: mapping a disk's bytes into memory; a cache of pages; disks of programs.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bio;
mod buffered;
mod direct;
mod disk;
mod ends;
mod failure;
mod file;
pub mod lent;
mod lent_pages;
mod loan;
mod nodes;
pub mod nvme;
mod outcome;
mod partition;
mod recovery;
mod requests;
mod scan;
mod store;
mod store_pages;
mod transfer;
mod urgent;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use block::Parts;
use mach::klog;
use mach::mem::DmaMemory;
use mach::sync::Once;
use sched::{Softirq, Work, raise, register_softirq};

pub use block::Durability;
pub use disk::Disk;
pub use nodes::{Family, MINORS};
pub use partition::Partition;
pub use store::Store;
pub use transfer::Segment;

/// Disks of a machine at most.
const DISKS_MAX: usize = 16;

/// The disks are the machine's, and found at boot.
static DISKS: [Once<Arc<Disk>>; DISKS_MAX] = [const { Once::new() }; DISKS_MAX];

/// Once at boot.
pub fn init() {
    vfs::devices::open_disks_by(file::open);
    let work = Work {
        run: complete_all,
        // An end raises an interrupt as soon as a command is sent.
        look: None,
    };
    register_softirq(Softirq::Block, work);
}

/// All disks, in the order in which they were found.
pub fn disks() -> impl Iterator<Item = &'static Arc<Disk>> {
    DISKS.iter().map_while(Once::get)
}

/// Who shows disks and partitions, and hears of their changes; said once at boot.
static SHOW: Once<fn()> = Once::new();

/// Says who is to hear that disks or partitions have changed.
pub fn show_by(show: fn()) {
    SHOW.call_once(|| show);
}

/// Disks or partitions have changed.
fn changed() {
    if let Some(show) = SHOW.get() {
        show();
    }
}

/// Takes a device, whose interrupts raise [`Softirq::Block`] and whose memory is `memory`; at boot. Its
/// partitions are read at once.
pub fn attach(parts: Parts, memory: DmaMemory, family: Family) {
    let number = disks().count();
    let Some(place) = DISKS.get(number) else {
        klog!("disk beyond the {DISKS_MAX}th is left alone");
        return;
    };
    let same = disks().filter(|disk| disk.major() == family.major());
    let identity = nodes::Identity::new(family, same.count());
    let disk = place.call_once(|| Disk::new(number, identity, parts, memory));
    nodes::add(disk.name(), disk.device(0));
    let limits = disk.limits();
    klog!(
        "disk {} sectors={} block={} queues={}",
        disk.name(),
        limits.sectors,
        limits.block_bytes,
        disk.lanes()
    );
    scan::read_at_boot(disk);
    changed();
}

/// A device has said that it is another than before.
static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A disk has another size than before, as an interrupt says.
pub fn note_change() {
    HAS_CHANGED.store(true, Ordering::Release);
    raise(Softirq::Block);
}

fn complete_all() {
    if HAS_CHANGED.load(Ordering::Relaxed) && HAS_CHANGED.swap(false, Ordering::AcqRel) {
        disks().for_each(|disk| disk.note_size());
    }
    disks().for_each(|disk| disk.complete());
    if let Some(go_on) = AFTER_ENDS.get() {
        go_on();
    }
}

/// Who hands in more when requests have ended; said once at boot.
static AFTER_ENDS: Once<fn()> = Once::new();

/// Says who is called after ends were told, with no lock held and where nobody may wait.
pub fn after_ends(go_on: fn()) {
    AFTER_ENDS.call_once(|| go_on);
}

/// Who looks at disks and partitions for what else may be on them; said once at boot.
static LOOK: Once<fn()> = Once::new();

/// Says who looks at disks and partitions that come when the machine runs.
pub fn look_by(look: fn()) {
    LOOK.call_once(|| look);
}

/// Disks or partitions have come.
fn look() {
    if let Some(look) = LOOK.get() {
        look();
    }
}

/// All stores there are: disks, and partitions of them.
pub fn stores() -> impl Iterator<Item = Store> {
    disks().flat_map(|disk| {
        let parts = disk.partitions().into_iter().map(Some);
        let all = core::iter::once(None).chain(parts);
        all.map(|part| Store::of(disk, part))
    })
}
