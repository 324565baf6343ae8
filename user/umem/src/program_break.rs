//! Segments from the program's break: `UMEM_OPTIONS=backend=sbrk`.
//!
//! The break is moved up by what a segment needs, or by `sbrk_minalloc` if that is more; what
//! is left over is for the next segment. Others may move the break as well: what lies behind
//! their part is a new start. A segment that is given back at the end waits there for the next;
//! another one leaves a hole.

use core::ptr::{self, NonNull};

use crate::lock::Lock;
use crate::{settings, sys};

/// Addresses below the break that are ours and unused.
struct Rest {
    start: usize,
    end: usize,
}

/// Taken below the lock of the spans only, so `fork` needs not know it.
static REST: Lock<Rest> = Lock::new(Rest { start: 0, end: 0 });

/// `bytes` zeroed bytes at a multiple of `align`; `None` where the break cannot go on.
pub fn map_aligned(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let mut rest = REST.lock();
    if rest
        .start
        .checked_next_multiple_of(align)?
        .checked_add(bytes)?
        > rest.end
    {
        rest.grow(bytes, align)?;
    }
    let start = rest.start.next_multiple_of(align);
    rest.start = start + bytes;
    let memory = NonNull::new(ptr::with_exposed_provenance_mut(start))?;
    if settings::has_huge_pages() {
        sys::advise(memory, bytes, libc::MADV_HUGEPAGE);
    }
    Some(memory)
}

/// Takes back what `map_aligned` gave.
pub fn unmap(start: NonNull<u8>, bytes: usize) {
    let mut rest = REST.lock();
    if rest.start == start.addr().get() + bytes {
        sys::discard(start, bytes);
        rest.start = start.addr().get();
    } else {
        sys::unmap(start, bytes);
    }
}

impl Rest {
    /// Moves the break until there is room.
    fn grow(&mut self, bytes: usize, align: usize) -> Option<()> {
        let at = sys::move_break(0)?;
        let start = if at == self.end { self.start } else { at };
        let end = start.checked_next_multiple_of(align)?.checked_add(bytes)?;
        let more = end.checked_sub(at)?.max(settings::break_least());
        let before = sys::move_break(more)?;
        // Somebody else moved it in between: then there may be too little room, and no
        // segment this time.
        if before != at {
            (self.start, self.end) = (before, before + more);
            let fits = before.next_multiple_of(align) + bytes <= self.end;
            return fits.then_some(());
        }
        (self.start, self.end) = (start, at + more);
        Some(())
    }
}
