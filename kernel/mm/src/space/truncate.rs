//! Taking pages that a file has lost from everybody who maps them.
//!
//! A file that shrinks gives up pages, but programs may still have them mapped. They must
//! get SIGBUS there from now on, so the pages leave all page tables. That is rare, and files
//! do not know who maps them: so all address spaces are searched. Whoever has processes shows
//! them ([`find_spaces_by`]).

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Gather;
use mach::sync::Once;
use vma::Area;

use super::address_space::{State, prot};
use super::{AddressSpace, Object, Page};

const PAGE: u64 = PAGE_BYTES as u64;

/// Shows all address spaces of programs, each once or more.
type EachSpace = fn(&mut dyn FnMut(&AddressSpace));

/// Said once at boot by who knows processes.
static EACH_SPACE: Once<EachSpace> = Once::new();

/// Says who shows the address spaces; once at boot.
pub fn find_spaces_by(each: EachSpace) {
    EACH_SPACE.call_once(|| each);
}

fn for_each_space(look: &mut dyn FnMut(&AddressSpace)) {
    if let Some(each) = EACH_SPACE.get() {
        each(look);
    }
}

/// The object at the address `identity` has lost everything from byte `end` on, and hands
/// out no such page any more. No spin lock is held.
pub fn forget_beyond(identity: usize, end: u64) {
    let first = end.next_multiple_of(PAGE);
    for_each_space(&mut |space| space.forget_beyond(identity, first));
}

impl AddressSpace {
    fn forget_beyond(&self, identity: usize, first: u64) {
        let Ok(table) = self.table() else { return };
        let state = self.lock_settled();
        let Some(span) = span_of(&state, identity) else {
            return;
        };
        let forgotten = self.in_pieces(state, span, &mut |state, piece| {
            let mut gather = Gather::new(table);
            for area in state.areas.overlapping(piece.clone()) {
                let Some(backing) = &area.backing else {
                    continue;
                };
                let kept = first.saturating_sub(backing.offset);
                if backing.object.identity() == identity && kept < area.bytes() {
                    let from = VirtAddr(area.start.0 + kept).max(piece.start);
                    table.unmap(from, area.end.min(piece.end), &mut gather);
                }
            }
            Ok(())
        });
        debug_assert!(forgotten.is_ok(), "no step fails");
    }

    fn protect_pages(&self, identity: usize, pages: &Range<u64>) {
        let Ok(table) = self.table() else { return };
        let state = self.lock_settled();
        let mut gather = Gather::new(table);
        let is_shared = |area: &&Area<Object>| area.traits.shared && shows(area, identity);
        for area in state.areas.iter().filter(is_shared) {
            let offset = area.backing.as_ref().map_or(0, |backing| backing.offset);
            let place = |page: u64| {
                let bytes = page.saturating_mul(PAGE).saturating_sub(offset);
                area.start + bytes.min(area.bytes())
            };
            let (from, until) = (place(pages.start), place(pages.end));
            if from < until {
                let rights = prot(area.access).without_write();
                table.protect(from, until, rights, false, &mut gather);
            }
        }
    }

    fn forget_pages(&self, identity: usize, gone: &[(u64, Page)]) {
        let Ok(table) = self.table() else { return };
        let state = self.lock_settled();
        let mut gather = Gather::new(table);
        for area in state.areas.iter().filter(|area| shows(area, identity)) {
            let offset = area.backing.as_ref().map_or(0, |backing| backing.offset);
            let (first, end) = (offset / PAGE, (offset + area.bytes()) / PAGE);
            let from = gone.partition_point(|(number, _)| *number < first);
            let shown = gone[from..].iter().take_while(|(number, _)| *number < end);
            for (number, page) in shown {
                let at = area.start + (number * PAGE - offset);
                let shown = table.page(at);
                if shown.is_some_and(|shown| shown.phys() == page.phys()) {
                    table.unmap(at, at + PAGE, &mut gather);
                }
            }
        }
    }
}

/// The object at the address `identity` hands out these pages, by number, no more: they are
/// taken from all who show them. Copies that programs have made of them stay. No spin lock
/// is held.
pub fn forget_pages(identity: usize, gone: &[(u64, Page)]) {
    for_each_space(&mut |space| space.forget_pages(identity, gone));
}

/// The next store to these pages of the object at the address `identity` by a shared mapping
/// faults, so that it is marked again. No spin lock is held.
pub fn protect_pages(identity: usize, pages: Range<u64>) {
    for_each_space(&mut |space| space.protect_pages(identity, &pages));
}

/// Whether a program may store to the object at the address `identity` by a shared mapping, or
/// may ask for that.
pub fn may_be_stored_to(identity: usize) -> bool {
    let stores =
        |area: &Area<Object>| area.traits.shared && area.limit.write && shows(area, identity);
    let mut is_found = false;
    for_each_space(&mut |space| {
        is_found = is_found || space.lock().areas.iter().any(stores);
    });
    is_found
}

/// From the first to the last address at which the object is mapped.
fn span_of(state: &State, identity: usize) -> Option<Range<VirtAddr>> {
    let mut areas = state.areas.iter().filter(|area| shows(area, identity));
    let first = areas.next()?;
    let end = areas.last().map_or(first.end, |last| last.end);
    Some(first.start..end)
}

fn shows(area: &Area<Object>, identity: usize) -> bool {
    let backing = area.backing.as_ref();
    backing.is_some_and(|backing| backing.object.identity() == identity)
}
