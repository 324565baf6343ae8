//! The vDSO's two pages: the code that programs call to read the clock, and the data that
//! it reads. `exec` maps the data page and, right after it, the code page into every
//! program and passes the code page's address as `AT_SYSINFO_EHDR`.
//!
//! The data page is written here alone, under a lock, by the protocol of the crate `vdso`.

use core::sync::atomic::{Ordering, fence};

use base::PAGE_BYTES;
use timekeeping::Scale;
use vdso::field;

use crate::mem::Page;
use crate::sync::{Once, Spin};

const _: () = assert!(vdso::IMAGE.len() <= PAGE_BYTES, "the code is one page");

/// What readers of the clock need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The monotonic clock.
    pub scale: Scale,
    /// Nanoseconds between 1970 and the machine's start.
    pub wall_offset_ns: u64,
    /// The monotonic clock as nobody corrected it.
    pub raw: Scale,
}

/// All programs read the same page, for there is one clock.
static DATA: Once<Page> = Once::new();
/// They run the same code.
static CODE: Once<Page> = Once::new();
/// Held by who writes the page.
static WRITER: Spin<()> = Spin::new(());

/// The page that the code reads; to be mapped readable right before [`code_page`].
///
/// `None` if the machine had no memory for it at boot.
pub fn data_page() -> Option<Page> {
    DATA.get().cloned()
}

/// The code; to be mapped readable and executable. `None` as for [`data_page`].
pub fn code_page() -> Option<Page> {
    CODE.get().cloned()
}

/// Makes the pages; from now on programs see the clock as `shown` says.
pub(crate) fn init(shown: fn() -> Shown) {
    if let (Some(data), Some(code)) = (Page::zeroed(), Page::zeroed()) {
        code.write(0, vdso::IMAGE);
        CODE.call_once(|| code);
        DATA.call_once(|| data);
        publish(shown);
    }
}

/// Makes what `change` returns visible to programs. They do not see the clock meanwhile.
pub(crate) fn publish(change: impl FnOnce() -> Shown) {
    let Some(page) = DATA.get() else {
        change();
        return;
    };
    let _alone = WRITER.lock();
    let store = |index: usize, value| page.store_u64(index * 8, value);
    let sequence = page.load_u64(field::SEQUENCE * 8);
    store(field::SEQUENCE, sequence | 1);
    fence(Ordering::SeqCst);
    let shown = change();
    store(field::CLOCK_USABLE, 1);
    for (line, scale) in [(field::MONOTONIC, shown.scale), (field::RAW, shown.raw)] {
        store(line + field::BASE_TICKS, scale.base_ticks);
        store(line + field::BASE_NANOS, scale.base_ns);
        store(line + field::MULTIPLIER, scale.multiplier);
    }
    store(field::WALL_OFFSET, shown.wall_offset_ns);
    store(field::CPU_BY, cpu_by());
    store(field::SEQUENCE, sequence + 2);
}

fn cpu_by() -> u64 {
    if arch::cpuid::has_rdpid() {
        field::CPU_BY_RDPID
    } else if arch::cpuid::has_rdtscp() {
        field::CPU_BY_RDTSCP
    } else {
        field::CPU_BY_CALL
    }
}
