//! The page of zeros that all programs share where they only read.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::PAGE_SHIFT;

use super::Page;
use super::entry::{self, Prot, ZEROS};

/// Its place as an entry has it; 0 until it is made. All programs share the page, for none can
/// write to it.
static ADDRESS: AtomicU64 = AtomicU64::new(0);

/// The entry that shows it; `None` when memory is short.
#[inline]
pub(super) fn entry(prot: Prot) -> Option<u64> {
    let address = match ADDRESS.load(Relaxed) {
        0 => make()?,
        address => address,
    };
    Some(address | prot.without_write().bits() | ZEROS)
}

/// Makes it once and for all: it is never given back.
#[cold]
fn make() -> Option<u64> {
    let mine = entry::link(Page::zeroed()?.into_frame(), 0);
    match ADDRESS.compare_exchange(0, mine, Relaxed, Relaxed) {
        Ok(_) => Some(mine),
        Err(made) => {
            drop(Page::from_frame(mine >> PAGE_SHIFT));
            Some(made)
        }
    }
}
