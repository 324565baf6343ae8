//! Resolving page faults.
//!
//! The usual fault holds the space's lock and the table's, each once: it finds the area
//! (mostly the one of the fault before), walks to the last-level table, and fills the
//! entry and often neighbours. Only a page that an object has to fetch, or to find room for, takes a second turn.

use base::{PAGE_BYTES, VirtAddr};
use core::sync::atomic::Ordering::Relaxed;
use cred::Resource;
use mach::mem::{LARGE_PAGE_BYTES, LargePage, Leaf, Mapping, NoLeaf, Page, PageTable, Prot};
use vma::{Area, AreaMap, Backing};

use super::address_space::{State, prot};
use super::commit::Promise;
use super::remote::{ObjectPage, object_page};
use super::run::Run;
use super::{AddressSpace, Object, Rights, Sharing};

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

/// Whose rights count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The program's own.
    Program,
    /// A tracer's: it also writes to what is read-only, if it is private.
    Tracer,
}

impl Reach {
    fn extends_to(self, area: &Area<Object>, access: Access) -> bool {
        let is_readable = permits(area.access, Access::Read);
        self == Self::Tracer && access == Access::Write && !area.traits.shared && is_readable
    }
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
    /// What the page is kept on has no room for it (SIGBUS).
    NoRoom,
    /// No memory is left.
    OutOfMemory,
}

/// A page of an object.
struct Wanted {
    object: Object,
    index: u64,
    sharing: Sharing,
}

pub(super) type Result<T> = core::result::Result<T, FaultError>;

/// Pages that a fault on a file maps at most, those that are ready: 64 KiB, aligned.
const AROUND_PAGES: u64 = 16;
const PAGE: u64 = PAGE_BYTES as u64;
/// How often room is made for a page.
const ROOM_TRIES: usize = 3;

/// What one look at the map says.
enum Step {
    Done,
    /// The page of an object is needed; it may take time.
    Fetch(Wanted),
    /// A large page is needed; to clear it takes too long for a lock.
    FetchLarge,
    /// The place is under change.
    Wait,
}

impl AddressSpace {
    /// Resolves a fault at `address`, or says why it cannot be. May block.
    pub fn fault(&self, address: VirtAddr, access: Access) -> Result<()> {
        self.fault_as(address, access, Reach::Program)
    }

    /// The same for an access with this reach.
    pub(super) fn fault_as(&self, address: VirtAddr, access: Access, reach: Reach) -> Result<()> {
        let at = address.page_floor();
        match self.resolve(at, access, reach) {
            Err(FaultError::NoRoom) => self.resolve_with_room(at, access, reach),
            resolved => resolved,
        }
    }

    /// Again, after its object has made room: more than once, as others may take the page out in between.
    #[cold]
    #[inline(never)]
    fn resolve_with_room(&self, at: VirtAddr, access: Access, reach: Reach) -> Result<()> {
        for _ in 0..ROOM_TRIES {
            if let Some((object, index)) = self.storable(at) {
                object.memory.make_room(index)?;
            }
            match self.resolve(at, access, reach) {
                Err(FaultError::NoRoom) => {}
                resolved => return resolved,
            }
        }
        Err(FaultError::NoRoom)
    }

    /// What an area shows at an address to which the program may have the right to store.
    fn storable(&self, at: VirtAddr) -> Option<ObjectPage> {
        let state = self.lock();
        let area = state.areas.find(at).filter(|area| area.limit.write)?;
        object_page(area, at)
    }

    #[inline(always)]
    fn resolve(&self, at: VirtAddr, access: Access, reach: Reach) -> Result<()> {
        let table = self.table().map_err(|_| FaultError::NotMapped)?;
        let tried = self.attempt(table, at, access, reach, &mut Fetched::default())?;
        let is_slow = match tried {
            Step::Done => false,
            step => self.fetch_and_retry(table, at, access, reach, step)?,
        };
        let count = if is_slow {
            &self.slow_faults
        } else {
            &self.quick_faults
        };
        count.fetch_add(1, Relaxed);
        sched::current().count_fault(is_slow);
        Ok(())
    }

    /// Gets what the first try asked for, and tries until nothing is missing; says whether an
    /// object had to fetch a page.
    #[cold]
    #[inline(never)]
    fn fetch_and_retry(
        &self,
        table: &PageTable,
        at: VirtAddr,
        access: Access,
        reach: Reach,
        mut step: Step,
    ) -> Result<bool> {
        let mut fetched = Fetched::default();
        loop {
            match step {
                Step::Done => return Ok(fetched.page.is_some()),
                Step::Fetch(wanted) => {
                    let page = wanted.object.memory.page(wanted.index, wanted.sharing)?;
                    fetched.page = Some((wanted, page));
                }
                Step::Wait => self.wait_until_settled(),
                Step::FetchLarge => {
                    fetched.large = LargePage::zeroed();
                    if fetched.large.is_none() {
                        self.lock().large.rest();
                    }
                }
            }
            step = self.attempt(table, at, access, reach, &mut fetched)?;
        }
    }

    /// One try under the lock, with what the last try asked for. Inlined, for the first one asked
    /// for nothing and has nothing to hand on.
    #[inline(always)]
    fn attempt(
        &self,
        table: &PageTable,
        at: VirtAddr,
        access: Access,
        reach: Reach,
        fetched: &mut Fetched,
    ) -> Result<Step> {
        let mut state = self.lock();
        if state
            .changing
            .as_ref()
            .is_some_and(|range| range.contains(&at))
        {
            return Ok(Step::Wait);
        }
        let State {
            areas,
            run,
            large,
            promise,
            ..
        } = &mut *state;
        let area = match areas.find(at) {
            Some(area) => area,
            None => {
                grow_stack(areas, promise, at)?;
                areas.find(at).ok_or(FaultError::NotMapped)?
            }
        };
        if !permits(area.access, access) && !reach.extends_to(area, access) {
            return Err(FaultError::Forbidden);
        }
        if access == Access::Write
            && let Some(block) = large.block_for(area, at, *run)
            && table.has_room_for_large(block)
        {
            let Some(page) = fetched.large.take() else {
                return Ok(Step::FetchLarge);
            };
            if table.map_large(block, page, prot(area.access)).is_ok() {
                run.note(block, LARGE_PAGE_BYTES);
                return Ok(Step::Done);
            }
        }
        let fault = Fault {
            area,
            at,
            access,
            fetched: fetched.page.as_ref(),
        };
        match table.with_leaf(at, |leaf| fault.resolve(leaf, run)) {
            Ok(step) => step,
            // It permits all that its area does: another CPU was faster.
            Err(NoLeaf::Large) => Ok(Step::Done),
            Err(NoLeaf::NoMemory) => Err(FaultError::OutOfMemory),
        }
    }
}

/// What a fault has got while it held no lock.
#[derive(Default)]
struct Fetched {
    page: Option<(Wanted, Page)>,
    large: Option<LargePage>,
}

/// A fault that the area permits.
struct Fault<'a> {
    area: &'a Area<Object>,
    at: VirtAddr,
    access: Access,
    fetched: Option<&'a (Wanted, Page)>,
}

impl Fault<'_> {
    #[inline]
    fn resolve(&self, leaf: &Leaf<'_>, run: &mut Run) -> Result<Step> {
        if let Some(mapping) = leaf.mapping(self.at) {
            return self.upgrade(leaf, mapping).map(|()| Step::Done);
        }
        match &self.area.backing {
            Some(backing) => self.show(leaf, backing),
            None => run
                .fill(leaf, self.area, self.at, self.access)
                .map(|()| Step::Done),
        }
    }

    /// A page is there: allow what may be allowed, or copy it. It may also be that another
    /// CPU was faster, and this one only has to look again.
    ///
    /// Not inlined, nor is [`Fault::show`]: a first touch of fresh memory would set up their
    /// frames and registers too.
    #[inline(never)]
    fn upgrade(&self, leaf: &Leaf<'_>, mapping: Mapping) -> Result<()> {
        let (area, at) = (self.area, self.at);
        let rights = prot(area.access);
        let may_store = mapping.writable || self.access == Access::Write;
        if area.traits.shared && may_store && !mapping.writable {
            self.mark_dirty()?;
        }
        // Others may store to a page that is writable, so it is not copied whoever owns it.
        // Nor is a pinned one, which its program and those who pinned it share.
        let owned_by_others = mapping.shared && !mapping.writable && !area.traits.pinned;
        let is_copied = !area.traits.shared && (owned_by_others || mapping.zeros);
        if !is_copied || !may_store {
            let rights = if may_store {
                rights
            } else {
                rights.without_write()
            };
            leaf.grant(at, rights);
            return Ok(());
        }
        let page = if mapping.zeros {
            Page::zeroed()
        } else {
            leaf.copy(at)
        };
        leaf.replace(at, page.ok_or(FaultError::OutOfMemory)?, rights);
        Ok(())
    }

    /// Maps the page of an object where nothing is mapped.
    #[inline(never)]
    fn show(&self, leaf: &Leaf<'_>, backing: &Backing<Object>) -> Result<Step> {
        let index = (backing.offset + (self.at - self.area.start)) / PAGE;
        let sharing = if self.area.traits.shared {
            Sharing::Shared
        } else {
            Sharing::Private
        };
        let fetched = self.fetched.filter(|(wanted, _)| {
            (wanted.index, wanted.sharing) == (index, sharing)
                && wanted.object.identity() == backing.object.identity()
        });
        // An object that loses pages is asked again: it has the one that was fetched, which is held, unless it has lost it.
        let may_lose = backing.object.memory.shown().is_some();
        let at_hand = match fetched.filter(|_| !may_lose) {
            Some((_, page)) => Some(page.clone()),
            None => backing.object.memory.ready_page(index, sharing),
        };
        let Some(page) = at_hand else {
            return Ok(Step::Fetch(Wanted {
                object: backing.object.clone(),
                index,
                sharing,
            }));
        };
        self.map_object_page(leaf, backing, page)?;
        if self.access != Access::Write {
            self.map_around(leaf, backing, sharing);
        }
        Ok(Step::Done)
    }

    /// What the table shall permit for pages of the area's object.
    fn rights(&self, backing: &Backing<Object>) -> Prot {
        let mut rights = prot(self.area.access);
        if self.area.traits.shared {
            rights.caching = backing.object.memory.caching();
        }
        rights
    }

    fn map_object_page(
        &self,
        leaf: &Leaf<'_>,
        backing: &Backing<Object>,
        page: Page,
    ) -> Result<()> {
        let rights = self.rights(backing);
        let (page, rights) = match (self.access, self.area.traits.shared) {
            (Access::Write, true) => {
                self.mark_dirty()?;
                (page, rights)
            }
            (Access::Write, false) => {
                let copy = Page::copy_of(&page).ok_or(FaultError::OutOfMemory)?;
                (copy, rights)
            }
            _ => (page, rights.without_write()),
        };
        // The lock is held since the place was seen empty.
        drop(leaf.map(self.at, page, rights));
        Ok(())
    }

    fn mark_dirty(&self) -> Result<()> {
        match (&self.area.backing, self.area.offset_of(self.at)) {
            (Some(backing), Some(offset)) => backing.object.memory.mark_dirty(offset / PAGE),
            _ => Ok(()),
        }
    }

    /// Maps those neighbours that are ready and not mapped, to save their faults.
    fn map_around(&self, leaf: &Leaf<'_>, backing: &Backing<Object>, sharing: Sharing) {
        let block = AROUND_PAGES * PAGE;
        let first = VirtAddr(self.at.0 / block * block).max(self.area.start);
        let end = VirtAddr(self.at.0 / block * block + block).min(self.area.end);
        let rights = self.rights(backing).without_write();
        let index_of = |at: VirtAddr| (backing.offset + (at - self.area.start)) / PAGE;
        let from = index_of(first);
        let pages = from..from + (end - first) / PAGE;
        let memory = &backing.object.memory;
        memory.ready_pages(pages, sharing, &mut |index, page| {
            let at = first + (index - from) * PAGE;
            if leaf.is_empty(at) {
                drop(leaf.map(at, page.clone(), rights));
            }
        });
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
#[cold]
fn grow_stack(areas: &mut AreaMap<Object>, promise: &mut Promise, at: VirtAddr) -> Result<()> {
    let stack = areas.above(at).filter(|area| area.traits.grows_down);
    let (start, end, promised) = stack
        .map(|area| (area.start, area.end, area.traits.promised))
        .ok_or(FaultError::NotMapped)?;
    let limit = cred::limit(Resource::StackBytes);
    if end - at > limit {
        return Err(FaultError::NotMapped);
    }
    let below = start.0.saturating_sub(vma::STACK_GAP_BYTES).min(at.0);
    if areas.overlapping(VirtAddr(below)..start).next().is_some() {
        return Err(FaultError::NotMapped);
    }
    if promised {
        let grown = promise.grow(start - at);
        grown.map_err(|_| FaultError::NotMapped)?;
    }
    areas.grow_down(start, at);
    Ok(())
}
