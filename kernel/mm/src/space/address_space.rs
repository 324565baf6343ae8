//! One address space.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, VirtAddr};
use hal::caching::Caching;
use mach::mem::{PageTable, Prot, USER_END};
use mach::sync::{Lazy, Spin, SpinGuard};
use sched::resched_point;
use sync::{Error, Result, WaitQueue};
use vma::AreaMap;

use super::change::areas_end;
use super::commit::Promise;
use super::large::LargeUse;
use super::left::Left;
use super::run::Run;
use super::{Layout, Locking, Object, Rights};

/// What the lock guards.
pub(super) struct State {
    pub areas: AreaMap<Object>,
    /// The program's heap: `[start, end)`, the end at any byte.
    pub heap: Range<VirtAddr>,
    pub layout: Layout,
    /// What is mapped from now on is locked (`MCL_FUTURE`).
    pub lock_future: Option<Locking>,
    /// The last faults on anonymous memory.
    pub run: Run,
    pub large: LargeUse,
    /// Promised memory of the areas; between a call's promise and its end more.
    pub promise: Promise,
    /// What is under change while the lock is let go (`change`).
    pub changing: Option<Range<VirtAddr>>,
}

/// The locked state. When it is let go and nothing is under change, what is promised is what
/// the areas say.
pub(super) struct Locked<'a>(SpinGuard<'a, State>);

impl Deref for Locked<'_> {
    type Target = State;
    #[inline(always)]
    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Locked<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.changing.is_none() {
            let bytes = self.0.areas.promised_bytes();
            self.0.promise.settle(bytes);
        }
    }
}

/// The memory of one process.
pub struct AddressSpace {
    /// `None` for the space of threads that have no program.
    table: Option<PageTable>,
    state: Spin<State>,
    /// Who waits for the end of a change.
    pub(super) settled: WaitQueue,
    /// Faults resolved with what was at hand, and with waiting for an object.
    pub(super) quick_faults: AtomicU64,
    pub(super) slow_faults: AtomicU64,
    /// The most pages that were resident.
    pub(super) resident_max: AtomicUsize,
    /// Where it goes if who lets go of it last may close no files.
    left: Spin<Option<Box<Left>>>,
}

/// What threads of the kernel run in, which have no program.
static KERNEL: Lazy<Arc<AddressSpace>> =
    Lazy::new(|| Arc::new(AddressSpace::with(None, Layout::random([0; 4], 0), None)));

impl AddressSpace {
    fn with(table: Option<PageTable>, layout: Layout, left: Option<Box<Left>>) -> Self {
        let zero = VirtAddr(0);
        let state = State {
            areas: AreaMap::new(),
            heap: zero..zero,
            layout,
            lock_future: None,
            run: Run::default(),
            large: LargeUse::default(),
            promise: Promise::default(),
            changing: None,
        };
        Self {
            table,
            state: Spin::new(state),
            settled: WaitQueue::new(),
            quick_faults: AtomicU64::new(0),
            slow_faults: AtomicU64::new(0),
            resident_max: AtomicUsize::new(0),
            left: Spin::new(left),
        }
    }

    /// The space of threads that have no program: only the kernel is mapped.
    pub fn kernel() -> Arc<Self> {
        KERNEL.clone()
    }

    /// An empty space for a program.
    pub fn new(layout: Layout) -> Result<Arc<Self>> {
        let table = PageTable::new().ok_or(Error::OutOfMemory)?;
        let left = Left::room()?;
        Ok(Arc::new(Self::with(Some(table), layout, Some(left))))
    }

    /// Makes this the CPU's address space. The kernel's own space keeps what is loaded:
    /// nobody touches user addresses in it.
    #[inline]
    pub fn activate(&self) {
        if let Some(table) = &self.table {
            table.activate();
        }
    }

    /// Where things were placed in it.
    pub fn layout(&self) -> Layout {
        self.state.lock().layout
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked(self.state.lock())
    }

    /// The page table; an error for the kernel's space, in which nothing can be mapped.
    #[inline]
    pub(super) fn table(&self) -> Result<&PageTable> {
        self.table.as_ref().ok_or(Error::OutOfMemory)
    }

    /// Faults resolved so far: (without, with waiting for an object).
    pub fn fault_counts(&self) -> (u64, u64) {
        (
            self.quick_faults.load(Relaxed),
            self.slow_faults.load(Relaxed),
        )
    }

    /// Memory that is resident now, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let pages = self.table.as_ref().map_or(0, PageTable::resident);
        (pages * PAGE_BYTES) as u64
    }

    /// Page tables that it takes, in bytes.
    pub fn table_bytes(&self) -> u64 {
        let tables = self.table.as_ref().map_or(0, PageTable::tables);
        (tables * PAGE_BYTES) as u64
    }

    /// The most memory that was resident, in bytes, as far as faults and unmappings saw it.
    pub fn resident_bytes_max(&self) -> u64 {
        let seen = (self.resident_max.load(Relaxed) * PAGE_BYTES) as u64;
        seen.max(self.resident_bytes())
    }

    /// Memory that is mapped, in bytes, resident or not.
    pub fn mapped_bytes(&self) -> u64 {
        self.lock().areas.bytes()
    }

    /// Remembers the resident size before pages go away.
    pub(super) fn note_resident(&self) {
        if let Some(table) = &self.table {
            self.resident_max.fetch_max(table.resident(), Relaxed);
        }
    }

    /// The object whose first byte is mapped at `start`.
    pub fn object_at(&self, start: VirtAddr) -> Option<Object> {
        let state = self.lock();
        let area = state.areas.find(start).filter(|area| area.start == start)?;
        let backing = area
            .backing
            .as_ref()
            .filter(|backing| backing.offset == 0)?;
        Some(backing.object.clone())
    }

    /// For an address in memory that other spaces may share: what names it everywhere
    /// (a number of the memory object, the offset in it). `None` for private memory.
    pub fn shared_identity(&self, address: VirtAddr) -> Result<Option<(usize, u64)>> {
        let state = self.lock();
        let area = state.areas.find(address).ok_or(Error::BadAddress)?;
        if !area.traits.shared {
            return Ok(None);
        }
        let backing = area.backing.as_ref();
        Ok(backing.map(|b| (b.object.identity(), b.offset + (address - area.start))))
    }
}

impl Drop for AddressSpace {
    /// Gives the pages back area by area: the table alone would have to search for them.
    fn drop(&mut self) {
        if let Some(table) = &mut self.table {
            let areas = self.state.get_mut().areas.iter();
            table.clear(areas.map(|area| area.start..area.end));
        }
    }
}

/// Lets go of a space. If nobody else has it, its memory is given back with chances to
/// reschedule, so it is called without a spin lock, by whoever may be the last.
pub fn release(space: Arc<AddressSpace>) {
    if let Some(space) = Arc::into_inner(space) {
        space.dismantle();
    }
}

/// The same under locks of files, where nobody may close one: the space is left to [`super::close_left`].
pub fn leave(space: Arc<AddressSpace>) {
    if let Some(mut space) = Arc::into_inner(space)
        && let Some(left) = space.left.get_mut().take()
    {
        left.leave(space);
    }
}

impl AddressSpace {
    pub(super) fn dismantle(mut self) {
        if self.is_one_piece() {
            return;
        }
        let Some(mut table) = self.table.take() else {
            return;
        };
        let areas = &mut self.state.get_mut().areas;
        loop {
            let first = areas.iter().next().map(|area| (area.start, area.end));
            let Some((from, area_end)) = first else {
                break;
            };
            let end = table.piece_end(from, area_end);
            table.clear([from..end].into_iter());
            // Without a place for the rest of it, the area goes as a whole, and the table's
            // end finds its pages.
            let mut removed = areas.remove(from..end);
            if removed.is_err() {
                removed = areas.remove(from..area_end);
            }
            if removed.is_err() {
                break;
            }
            drop(removed);
            resched_point();
        }
        while areas.shed() {
            resched_point();
        }
        table.dissolve(&mut resched_point);
    }
}

impl AddressSpace {
    /// Whether it is so small that dropping it delays nobody.
    fn is_one_piece(&mut self) -> bool {
        let state = self.state.get_mut();
        let end = |table| areas_end(state, table, VirtAddr(0)..USER_END);
        self.table
            .as_ref()
            .is_none_or(|table| end(table) == USER_END)
    }
}

/// What the page table shall permit for an area's rights.
pub(super) fn prot(rights: Rights) -> Prot {
    Prot {
        read: rights.read,
        write: rights.write,
        exec: rights.exec,
        caching: Caching::WriteBack,
    }
}

/// `[start, start + bytes)` in whole pages; `None` if it is empty or leaves the user half.
pub(super) fn page_range(start: VirtAddr, bytes: u64) -> Option<Range<VirtAddr>> {
    let end = start.checked_add(bytes)?.page_ceil();
    let inside = start.page_offset() == 0 && start < end && end <= mach::mem::USER_END;
    inside.then_some(start..end)
}
