//! Taking pages that a file has lost from everybody who maps them.
//!
//! A file that shrinks gives up pages, but programs may still have them mapped. They must
//! get SIGBUS there from now on, so the pages leave all page tables. That is rare, and files
//! do not know who maps them: so all address spaces are searched.

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Gather;

use super::AddressSpace;
use crate::task::family;

const PAGE: u64 = PAGE_BYTES as u64;

/// The object at the address `identity` has lost everything from byte `end` on, and hands
/// out no such page any more. No spin lock is held.
pub fn forget_beyond(identity: usize, end: u64) {
    let first = end.next_multiple_of(PAGE);
    for process in family::processes() {
        process.space.get().forget_beyond(identity, first);
    }
}

impl AddressSpace {
    fn forget_beyond(&self, identity: usize, first: u64) {
        let Ok(table) = self.table() else { return };
        let state = self.lock();
        let mut gather = Gather::new(table);
        for area in state.areas.iter() {
            let Some(backing) = &area.backing else {
                continue;
            };
            let kept = first.saturating_sub(backing.offset);
            if backing.object.identity() == identity && kept < area.bytes() {
                let from = VirtAddr(area.start.0 + kept);
                table.unmap(from, area.end, &mut gather);
            }
        }
    }
}
