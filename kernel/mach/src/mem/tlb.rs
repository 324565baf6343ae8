//! The TLBs of this machine: the protocol of [`shootdown`], with this processor's
//! instructions.
//!
//! The problem, the idea and why nothing stale is used are told there. This is the binding:
//! who I am, what CR3 holds, what an interrupt is.
//!
//! Where the processor offers PCIDs, CR3 holds a root and a tag, and a switch between spaces
//! forgets nothing. INVPCID is not used: all it could add is to forget in a space
//! that is not loaded, and that waits until the CPU returns there anyway.
//!
//! Invariant **Loaded**: a space that a CPU has loaded lives: [`evict`] takes it from every
//! CPU before it is dropped, and it is boxed, so it does not move.

use alloc::boxed::Box;
use core::num::NonZeroU64;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use base::{CpuId, Native, PAGE_BYTES, PAGE_SHIFT};
use frames::FrameNo;
use shootdown::{Event, Events, Hardware, Local, Pages, Shootdown, Space};

use super::kernel_map::kernel_root;
use crate::cpu::{self, Own, Private, own};

/// CR3: what is remembered under the tag stays valid.
const KEEP: u64 = 1 << 63;
const CR4_PCIDE: u64 = 1 << 17;

/// What the machine's TLBs may hold.
static TLBS: Shootdown<Native, { cpu::MAX_CPUS }> = Shootdown::new();
/// Each CPU's own.
static MINE: Own<Private<CpuState>> = own!(Private<CpuState>, Private::new(CpuState::new()));
/// CR3 has room for a tag. Of the processors, which are alike.
static TAGGED: AtomicBool = AtomicBool::new(false);
/// Each CPU's own.
static COUNTS: Own<Counts> = own!(Counts, Counts::new());

/// What a CPU has for itself.
struct CpuState {
    local: Local,
    /// The space that was loaded last. If the kernel's table took its place, the space may be
    /// gone.
    loaded: Option<&'static Space<Native>>,
}

impl CpuState {
    const fn new() -> Self {
        Self {
            local: Local::new(),
            loaded: None,
        }
    }
}

/// Events of one CPU, which alone writes them.
struct Counts([AtomicU64; Event::ALL.len()]);

impl Counts {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Event::ALL.len()])
    }
}

/// What all CPUs did to their TLBs since the start.
pub fn tlb_events() -> Events {
    let mut sums = Events::default();
    for counts in COUNTS.iter() {
        for (&event, count) in Event::ALL.iter().zip(&counts.0) {
            sums.add(event, count.load(Relaxed));
        }
    }
    sums
}

/// One page table to the TLBs.
#[derive(Debug)]
pub(super) struct SpaceId {
    space: Box<Space<Native>>,
}

impl SpaceId {
    pub fn new(root: FrameNo) -> Self {
        /// The last number given, as no two spaces may have the same.
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NonZeroU64::MIN.saturating_add(NUMBERS.fetch_add(1, Relaxed));
        let space = Box::new(Space::new(number, root << PAGE_SHIFT));
        Self { space }
    }
}

struct ThisCpu;

impl Hardware for ThisCpu {
    #[inline]
    fn load(&self, root: u64, tag: usize, keep: bool) {
        let tag_bits = tag as u64 | if keep { KEEP } else { 0 };
        let tag_bits = if TAGGED.load(Relaxed) { tag_bits } else { 0 };
        // SAFETY: **Shared half**: every root maps the kernel alike; **Loaded**.
        unsafe { arch::instr::write_cr3(root | tag_bits) }
    }

    fn load_kernel(&self) {
        // SAFETY: **Shared half**.
        unsafe { arch::instr::write_cr3(kernel_root()) }
    }

    #[inline]
    fn forget_one(&self, address: u64) {
        arch::instr::invlpg(address);
    }

    fn forget_all(&self) {
        let loaded = arch::instr::read_cr3();
        // SAFETY: it is loaded already; writing it again without `KEEP` only forgets.
        unsafe { arch::instr::write_cr3(loaded) }
    }

    fn interrupt(&self, cpu: CpuId) {
        cpu::request_service(cpu);
    }

    fn pause(&self) {
        core::hint::spin_loop();
    }

    #[inline]
    fn count(&self, event: Event, times: u64) {
        let count = &COUNTS.get().0[event as usize];
        count.store(count.load(Relaxed) + times, Relaxed);
    }
}

/// Before `cpu` is started.
pub(super) fn add_cpu(cpu: CpuId) {
    MINE.prepare(cpu);
    COUNTS.prepare(cpu);
}

/// Makes this CPU tell the translations of different spaces apart, if it can. A table
/// without a tag is loaded.
pub(crate) fn enable_tags() {
    if !arch::cpuid::has_pcid() {
        return;
    }
    // SAFETY: the processor has PCIDs, and CR3 holds none.
    unsafe { arch::instr::write_cr4(arch::instr::read_cr4() | CR4_PCIDE) };
    MINE.with(|mine| mine.local.use_tags());
    TAGGED.store(true, Relaxed);
}

/// The CPU goes to rest.
#[inline]
pub(crate) fn rest() {
    MINE.with(|mine| TLBS.rest(cpu::id(), &mine.local));
}

/// The CPU's rest is over; whether it still has a program's table.
#[inline]
pub(crate) fn wake() -> bool {
    MINE.with(|mine| {
        let loaded = mine.loaded.filter(|_| mine.local.space() != 0);
        TLBS.wake(cpu::id(), &mut mine.local, loaded, &ThisCpu)
    })
}

/// Loads a table, unless it is loaded already.
#[inline]
pub(super) fn activate(id: &SpaceId) {
    let space: *const Space<Native> = &raw const *id.space;
    // SAFETY: **Loaded**.
    let space = unsafe { &*space };
    MINE.with(|mine| {
        mine.loaded = Some(space);
        TLBS.activate(cpu::id(), &mut mine.local, space, &ThisCpu);
    });
}

/// Leaves the user half of whatever table is loaded.
pub fn enter_kernel_table() {
    MINE.with(|mine| TLBS.enter_kernel(cpu::id(), &mut mine.local, &ThisCpu));
}

/// Makes every CPU forget `range`, addresses of pages in the space, of which `changed` pages
/// lost rights.
#[inline]
pub(super) fn flush(id: &SpaceId, range: Range<u64>, changed: u64) {
    let pages = pages(range);
    ThisCpu.count(Event::Pages, changed);
    MINE.with(|mine| TLBS.flush(cpu::id(), &mut mine.local, &id.space, pages, &ThisCpu));
}

/// The same when tables for the range are to be given back, too.
#[cold]
pub(super) fn flush_tables(id: &SpaceId, range: Range<u64>, changed: u64) {
    let pages = pages(range);
    ThisCpu.count(Event::Pages, changed);
    MINE.with(|mine| TLBS.flush_tables(cpu::id(), &mut mine.local, &id.space, pages, &ThisCpu));
}

fn pages(range: Range<u64>) -> Pages {
    Pages {
        first: range.start,
        count: (range.end - range.start) / PAGE_BYTES as u64,
    }
}

/// Takes the table off every CPU, resting ones too, before its root is given back.
pub(super) fn evict(id: &SpaceId) {
    MINE.with(|mine| TLBS.evict(cpu::id(), &mut mine.local, &id.space, &ThisCpu));
}

/// Serves what other CPUs ask of this one. Takes no lock; cheap when there is nothing.
#[inline]
pub(super) fn serve() {
    MINE.with(|mine| TLBS.serve(cpu::id(), &mut mine.local, &ThisCpu));
}
