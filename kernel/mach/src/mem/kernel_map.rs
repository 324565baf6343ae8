//! The kernel's own half: the direct map, the image, devices, stacks.
//!
//! ```text
//! DIRECT_MAP         RAM, read and write; below 4 GiB also devices, uncached
//! DEVICES            registers above 4 GiB, uncached, handed out from below
//! STACKS             kernel stacks between guard pages
//! SCATTERED          objects of the heap that no row of frames could hold
//! top 2 GiB          the image: text executable, constants read-only, data writable
//! ```
//!
//! After boot entries are added, and those of memory that rests taken out again; only the latter
//! must be forgotten by the CPUs (`kernel_tlb`).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arch::layout::{DIRECT_MAP, IMAGE_OFFSET};
use base::{PAGE_BYTES, PAGE_SHIFT, PhysAddr, VirtAddr};
use frames::FrameNo;

use super::direct;
use super::entry::{self, GLOBAL, LARGE, NO_EXECUTE, PRESENT, UNCACHED, WRITE, WRITE_THROUGH};
use super::setup::PhysRange;
use super::walk::{self, Tree};
use crate::sync::Spin;

/// Registers of devices that lie above the direct map's devices.
pub(super) const DEVICES: u64 = 0xffff_c000_0000_0000;
/// Kernel stacks.
pub(super) const STACKS: u64 = 0xffff_c080_0000_0000;
/// Long objects of the heap, in large pages.
pub(super) const SCATTERED: u64 = 0xffff_c100_0000_0000;
/// Below, whatever is not RAM is mapped as devices.
pub(super) const LOW_DEVICES_END: u64 = 4 << 30;

/// How the kernel may use a range.
pub(super) const DATA: u64 = PRESENT | WRITE | GLOBAL | NO_EXECUTE;
pub(super) const DEVICE: u64 = DATA | UNCACHED | WRITE_THROUGH;
/// Write-combining: see `arch::caching`.
pub(super) const COMBINING: u64 = DATA | WRITE_THROUGH;
const CONSTANTS: u64 = PRESENT | GLOBAL | NO_EXECUTE;
const TEXT: u64 = PRESENT | GLOBAL;

/// Bytes of a large page.
pub(super) const LARGE_BYTES: u64 = walk::span(1);

/// The kernel's half is the same in all address spaces.
static TREE: Spin<Option<Tree>> = Spin::new(None);
/// Its root, for CPUs without a program's space.
static ROOT: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_start: u8;
    static __rodata_end: u8;
    static __data_start: u8;
    static __image_end: u8;
}

/// The kernel's root, for CR3; 0 before [`build`].
pub(crate) fn kernel_root() -> u64 {
    ROOT.load(Relaxed)
}

/// Gives the root of a new user table the kernel's half (**Shared half**).
pub(super) fn share_kernel_half(root: FrameNo) {
    let half = PAGE_BYTES / 2;
    let kernel = direct::frame_pointer(kernel_root() >> PAGE_SHIFT).wrapping_add(half);
    let new = direct::frame_pointer(root).wrapping_add(half);
    // SAFETY: **Tables**: the kernel's root never changes there, the new one is the caller's.
    unsafe { new.copy_from_nonoverlapping(kernel, half) }
}

/// Builds the kernel's tables and loads them. `None` if memory is short.
pub(super) fn build(ram: &[PhysRange]) -> Option<()> {
    let root = walk::new_table()?;
    // SAFETY: the root is new and empty.
    let mut tree = unsafe { Tree::new(root) };
    for range in ram {
        map(
            &mut tree,
            DIRECT_MAP + range.start.0,
            range.start.0,
            range.bytes(),
            DATA,
        )?;
    }
    map_low_devices(&mut tree, ram)?;
    map_image(&mut tree)?;
    for area in [DEVICES, STACKS, SCATTERED] {
        tree.find_or_make(VirtAddr(area), 2, WRITE)?;
    }
    ROOT.store(root << PAGE_SHIFT, Relaxed);
    *TREE.lock() = Some(tree);
    super::tlb::enter_kernel_table();
    Some(())
}

/// What lies between the ranges of RAM below 4 GiB.
fn map_low_devices(tree: &mut Tree, ram: &[PhysRange]) -> Option<()> {
    let mut at = 0;
    for range in ram.iter().filter(|range| range.start.0 < LOW_DEVICES_END) {
        map(
            tree,
            DIRECT_MAP + at,
            at,
            range.start.0.saturating_sub(at),
            DEVICE,
        )?;
        at = range.end.0;
    }
    map(
        tree,
        DIRECT_MAP + at,
        at,
        LOW_DEVICES_END.saturating_sub(at),
        DEVICE,
    )
}

fn map_image(tree: &mut Tree) -> Option<()> {
    let parts = [
        (&raw const __text_start, &raw const __text_end, TEXT),
        (
            &raw const __rodata_start,
            &raw const __rodata_end,
            CONSTANTS,
        ),
        (&raw const __data_start, &raw const __image_end, DATA),
    ];
    for (start, end, rights) in parts {
        let start = VirtAddr(start.addr() as u64).page_floor();
        let end = VirtAddr(end.addr() as u64).page_ceil();
        map(tree, start.0, start.0 - IMAGE_OFFSET, end - start, rights)?;
    }
    Some(())
}

/// Maps `bytes` from `physical` at `at`, all multiples of a page, in the largest pages
/// that fit. Nothing is mapped there yet.
fn map(tree: &mut Tree, at: u64, physical: u64, bytes: u64, rights: u64) -> Option<()> {
    let mut done = 0;
    while done < bytes {
        let (at, physical) = (at + done, physical + done);
        let fits = (at | physical).is_multiple_of(LARGE_BYTES) && bytes - done >= LARGE_BYTES;
        let (level, large) = if fits { (1, LARGE) } else { (0, 0) };
        let slot = tree.find_or_make(VirtAddr(at), level, WRITE)?;
        slot.store(entry::link(physical >> PAGE_SHIFT, rights | large), Relaxed);
        done += walk::span(level);
    }
    Some(())
}

/// Adds a mapping to the kernel's half of all tables. `at` lies in an area.
pub(super) fn add(at: u64, physical: PhysAddr, bytes: usize, rights: u64) -> Option<()> {
    debug_assert!(bytes.is_multiple_of(PAGE_BYTES), "whole pages are mapped");
    map(TREE.lock().as_mut()?, at, physical.0, bytes as u64, rights)
}

/// Takes the mapping of `pages` contiguous frames out again and gives back the first;
/// `None` if there is none. CPUs still remember it.
pub(super) fn remove(at: u64, pages: usize) -> Option<FrameNo> {
    let guard = TREE.lock();
    let tree = guard.as_ref()?;
    let first = tree.find(VirtAddr(at), 0)?.load(Relaxed);
    for page in 0..pages {
        let slot = tree.find(VirtAddr(at + (page * PAGE_BYTES) as u64), 0)?;
        slot.store(0, Relaxed);
    }
    Some(entry::frame(first))
}

/// As [`remove`], for one large page.
pub(super) fn remove_large(at: u64) -> Option<FrameNo> {
    let guard = TREE.lock();
    let slot = guard.as_ref()?.find(VirtAddr(at), 1)?;
    Some(entry::frame(slot.swap(0, Relaxed)))
}
