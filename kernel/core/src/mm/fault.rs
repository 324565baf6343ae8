//! Resolving page faults.

use base::{PAGE_BYTES, VirtAddr};
use core::sync::atomic::Ordering::Relaxed;
use mach::mem::{Gather, MapError, Mapping, Page, PageTable, Prot};
use vma::Area;

use super::space::{State, prot};
use super::{AddressSpace, Object, Rights, Sharing};
use crate::task::{Resource, current};

/// What a program wanted to do with an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Execute,
}

/// Why a fault could not be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultError {
    /// Nothing is mapped there (SIGSEGV, SEGV_MAPERR).
    NotMapped,
    /// The mapping forbids this access (SIGSEGV, SEGV_ACCERR).
    Forbidden,
    /// The page lies beyond the end of its file or cannot be read (SIGBUS).
    Bus,
    /// No memory is left.
    OutOfMemory,
}

/// A page of an object.
#[derive(PartialEq)]
struct Wanted {
    object: Object,
    index: u64,
    sharing: Sharing,
}

type Result<T> = core::result::Result<T, FaultError>;

/// Pages that a fault on a file maps at most, those that are ready: 64 KiB, aligned.
const AROUND_PAGES: u64 = 16;
const PAGE: u64 = PAGE_BYTES as u64;

/// What one look at the map says.
enum Step {
    Done,
    /// The page of an object is needed; it may take time.
    Fetch(Wanted),
}

impl AddressSpace {
    /// Resolves a fault at `address`, or says why it cannot be. May block.
    pub fn fault(&self, address: VirtAddr, access: Access) -> Result<()> {
        let table = self.table().map_err(|_| FaultError::NotMapped)?;
        let at = address.page_floor();
        let mut fetched = None;
        loop {
            match self.attempt(table, at, access, fetched.as_ref())? {
                Step::Done => break,
                Step::Fetch(wanted) => {
                    let page = wanted.object.memory.page(wanted.index, wanted.sharing)?;
                    fetched = Some((wanted, page));
                }
            }
        }
        let count = if fetched.is_some() {
            &self.slow_faults
        } else {
            &self.quick_faults
        };
        count.fetch_add(1, Relaxed);
        Ok(())
    }

    /// One try under the lock, with the page that the last try asked for.
    fn attempt(
        &self,
        table: &PageTable,
        at: VirtAddr,
        access: Access,
        fetched: Option<&(Wanted, Page)>,
    ) -> Result<Step> {
        let mut state = self.lock();
        if state.areas.find(at).is_none() {
            grow_stack(&mut state, at)?;
        }
        let area = state.areas.find(at).ok_or(FaultError::NotMapped)?;
        if !permits(area.access, access) {
            return Err(FaultError::Forbidden);
        }
        if let Some(mapping) = table.query(at) {
            return upgrade(table, area, at, access, mapping).map(|()| Step::Done);
        }
        let Some(wanted) = wanted(area, at) else {
            let page = Page::zeroed().ok_or(FaultError::OutOfMemory)?;
            return map(table, at, page, prot(area.access)).map(|()| Step::Done);
        };
        let sharing = wanted.sharing;
        let at_hand = match fetched {
            Some((before, page)) if *before == wanted => Some(page.clone()),
            _ => wanted.object.memory.ready_page(wanted.index, sharing),
        };
        let Some(page) = at_hand else {
            return Ok(Step::Fetch(wanted));
        };
        map_object_page(table, area, at, page, access)?;
        if access != Access::Write {
            map_around(table, area, at, sharing);
        }
        Ok(Step::Done)
    }
}

fn permits(rights: Rights, access: Access) -> bool {
    match access {
        // The processor knows no right to store or fetch without the right to load.
        Access::Read => !rights.is_none(),
        Access::Write => rights.write,
        Access::Execute => rights.exec,
    }
}

/// Extends a stack down to `at`, if one lies above and its limit allows.
fn grow_stack(state: &mut State, at: VirtAddr) -> Result<()> {
    let stack = state.areas.above(at).filter(|area| area.traits.grows_down);
    let (start, end) = stack
        .map(|area| (area.start, area.end))
        .ok_or(FaultError::NotMapped)?;
    let limit = current().process.limits.soft(Resource::StackBytes);
    if end - at > limit {
        return Err(FaultError::NotMapped);
    }
    let below = start.0.saturating_sub(vma::STACK_GAP_BYTES).min(at.0);
    if state
        .areas
        .overlapping(VirtAddr(below)..start)
        .next()
        .is_some()
    {
        return Err(FaultError::NotMapped);
    }
    state.areas.grow_down(start, at);
    Ok(())
}

/// The page of its object that an area shows at `at`; `None` for anonymous memory.
fn wanted(area: &Area<Object>, at: VirtAddr) -> Option<Wanted> {
    let object = area.backing.as_ref()?.object.clone();
    let index = area.offset_of(at)? / PAGE;
    let sharing = if area.traits.shared {
        Sharing::Shared
    } else {
        Sharing::Private
    };
    Some(Wanted {
        object,
        index,
        sharing,
    })
}

/// A page is there: allow what may be allowed, or copy it. It may also be that another
/// CPU was faster, and this one only has to look again.
fn upgrade(
    table: &PageTable,
    area: &Area<Object>,
    at: VirtAddr,
    access: Access,
    mapping: Mapping,
) -> Result<()> {
    let rights = prot(area.access);
    let may_store = mapping.writable || access == Access::Write;
    if area.traits.shared && may_store && !mapping.writable {
        mark_dirty(area, at);
    }
    if area.traits.shared || !mapping.shared || !may_store {
        let rights = if may_store {
            rights
        } else {
            rights.without_write()
        };
        table.grant(at, rights);
        return Ok(());
    }
    let page = table.page(at).ok_or(FaultError::NotMapped)?;
    let copy = Page::copy_of(&page).ok_or(FaultError::OutOfMemory)?;
    let mut gather = Gather::new(table);
    table
        .replace(at, copy, rights, &mut gather)
        .map_err(out_of_memory)
}

fn out_of_memory(_: MapError) -> FaultError {
    FaultError::OutOfMemory
}

fn map(table: &PageTable, at: VirtAddr, page: Page, rights: Prot) -> Result<()> {
    table.map(at, page, rights).map_err(out_of_memory)
}

fn mark_dirty(area: &Area<Object>, at: VirtAddr) {
    if let (Some(backing), Some(offset)) = (&area.backing, area.offset_of(at)) {
        backing.object.memory.mark_dirty(offset / PAGE);
    }
}

/// Maps a page of an object where nothing is mapped.
fn map_object_page(
    table: &PageTable,
    area: &Area<Object>,
    at: VirtAddr,
    page: Page,
    access: Access,
) -> Result<()> {
    let rights = prot(area.access);
    match (access, area.traits.shared) {
        (Access::Write, true) => {
            mark_dirty(area, at);
            map(table, at, page, rights)
        }
        (Access::Write, false) => {
            let copy = Page::copy_of(&page).ok_or(FaultError::OutOfMemory)?;
            map(table, at, copy, rights)
        }
        _ => map(table, at, page, rights.without_write()),
    }
}

/// Maps those neighbours of `at` that are ready, to save their faults.
fn map_around(table: &PageTable, area: &Area<Object>, at: VirtAddr, sharing: Sharing) {
    let Some(backing) = &area.backing else { return };
    let block = AROUND_PAGES * PAGE;
    let first = VirtAddr(at.0 / block * block).max(area.start);
    let end = VirtAddr(at.0 / block * block + block).min(area.end);
    let rights = prot(area.access).without_write();
    for page_at in (first.0..end.0)
        .step_by(PAGE_BYTES)
        .map(VirtAddr)
        .filter(|&page| page != at)
    {
        let index = (backing.offset + (page_at - area.start)) / PAGE;
        let Some(page) = backing.object.memory.ready_page(index, sharing) else {
            continue;
        };
        match table.map(page_at, page, rights) {
            Ok(()) | Err(MapError::Occupied(_)) => {}
            Err(_) => return,
        }
    }
}
