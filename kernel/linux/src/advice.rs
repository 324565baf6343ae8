//! madvise, msync, mincore, mlock and its kin.

use alloc::vec::Vec;

use kernel::mm::Advice;
use kernel::mm::limits::check_lock;
use kernel::user;
use linux_raw_sys::general::{
    __NR_madvise, __NR_mincore, __NR_mlock, __NR_mlock2, __NR_mlockall, __NR_msync, __NR_munlock,
    __NR_munlockall, MADV_COLD, MADV_COLLAPSE, MADV_DODUMP, MADV_DOFORK, MADV_DONTDUMP,
    MADV_DONTFORK, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_KEEPONFORK, MADV_MERGEABLE,
    MADV_NOHUGEPAGE, MADV_NORMAL, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
    MADV_RANDOM, MADV_SEQUENTIAL, MADV_UNMERGEABLE, MADV_WILLNEED, MADV_WIPEONFORK, MCL_CURRENT,
    MCL_FUTURE, MCL_ONFAULT, MLOCK_ONFAULT, MS_ASYNC, MS_INVALIDATE, MS_SYNC,
};

use crate::call::{Arg, Call, Entry, Outcome};
use crate::errno::Errno;
use crate::memory::space;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_madvise,
        name: "madvise",
        args: &[Arg::Address, Arg::Size, Arg::Int],
        handler: madvise,
    },
    Entry {
        number: __NR_msync,
        name: "msync",
        args: &[Arg::Address, Arg::Size, Arg::Flags],
        handler: msync,
    },
    Entry {
        number: __NR_mincore,
        name: "mincore",
        args: &[Arg::Address, Arg::Size, Arg::Address],
        handler: mincore,
    },
    Entry {
        number: __NR_mlock,
        name: "mlock",
        args: &[Arg::Address, Arg::Size],
        handler: mlock,
    },
    Entry {
        number: __NR_mlock2,
        name: "mlock2",
        args: &[Arg::Address, Arg::Size, Arg::Flags],
        handler: mlock2,
    },
    Entry {
        number: __NR_munlock,
        name: "munlock",
        args: &[Arg::Address, Arg::Size],
        handler: munlock,
    },
    Entry {
        number: __NR_mlockall,
        name: "mlockall",
        args: &[Arg::Flags],
        handler: mlockall,
    },
    Entry {
        number: __NR_munlockall,
        name: "munlockall",
        args: &[],
        handler: munlockall,
    },
];

/// Pages whose residence is reported at once.
const MINCORE_PAGES: u64 = 4096;
const PAGE: u64 = base::PAGE_BYTES as u64;

fn madvise(call: Call<'_>) -> Outcome {
    let (start, bytes) = (call.addr(0), call.arg(1));
    let advice = match call.uint(2) {
        MADV_DONTNEED => Advice::Discard,
        MADV_FREE => Advice::Free,
        MADV_POPULATE_READ | MADV_POPULATE_WRITE => Advice::Populate,
        MADV_DONTFORK => Advice::Fork(false),
        MADV_DOFORK => Advice::Fork(true),
        MADV_WIPEONFORK => Advice::WipeOnFork(true),
        MADV_KEEPONFORK => Advice::WipeOnFork(false),
        MADV_HUGEPAGE => Advice::LargePages(true),
        MADV_NOHUGEPAGE => Advice::LargePages(false),
        // Advice about speed and dumps; there is nothing to do.
        MADV_NORMAL | MADV_RANDOM | MADV_SEQUENTIAL | MADV_WILLNEED | MADV_COLLAPSE
        | MADV_MERGEABLE | MADV_UNMERGEABLE | MADV_DONTDUMP | MADV_DODUMP | MADV_COLD
        | MADV_PAGEOUT => Advice::Nothing,
        _ => return Err(Errno::EINVAL),
    };
    space(&call).advise(start, bytes, advice)?;
    Ok(0)
}

fn msync(call: Call<'_>) -> Outcome {
    let flags = call.uint(2);
    let contradictory = flags & MS_SYNC != 0 && flags & MS_ASYNC != 0;
    if flags & !(MS_SYNC | MS_ASYNC | MS_INVALIDATE) != 0 || contradictory {
        return Err(Errno::EINVAL);
    }
    let (start, bytes) = (call.addr(0), call.arg(1));
    if flags & MS_INVALIDATE != 0 && space(&call).has_locked(start, bytes) {
        return Err(Errno::EBUSY);
    }
    space(&call).sync(start, bytes)?;
    Ok(0)
}

fn mincore(call: Call<'_>) -> Outcome {
    let (start, bytes) = (call.addr(0), call.arg(1));
    if start.page_offset() != 0 {
        return Err(Errno::EINVAL);
    }
    let end = start.checked_add(bytes).ok_or(Errno::ENOMEM)?;
    let mut at = start;
    while at < end {
        let step = (end - at).min(MINCORE_PAGES * PAGE);
        let resident: Vec<u8> = space(&call)
            .resident(at, step)?
            .into_iter()
            .map(u8::from)
            .collect();
        user::copy_out(&resident, call.addr(2) + (at - start) / PAGE)?;
        at = at + step;
    }
    Ok(0)
}

fn set_locked(call: &Call<'_>, locked: bool) -> Outcome {
    space(call).lock_pages(call.addr(0), call.arg(1), locked)?;
    Ok(0)
}

fn mlock(call: Call<'_>) -> Outcome {
    set_locked(&call, true)
}

fn mlock2(call: Call<'_>) -> Outcome {
    if call.uint(2) & !MLOCK_ONFAULT != 0 {
        return Err(Errno::EINVAL);
    }
    set_locked(&call, true)
}

fn munlock(call: Call<'_>) -> Outcome {
    set_locked(&call, false)
}

/// Nothing is ever paged out, so all memory is as good as locked.
fn mlockall(call: Call<'_>) -> Outcome {
    let flags = call.uint(0);
    if flags & (MCL_CURRENT | MCL_FUTURE) == 0
        || flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0
    {
        return Err(Errno::EINVAL);
    }
    let mapped = if flags & MCL_CURRENT != 0 {
        space(&call).mapped_bytes()
    } else {
        0
    };
    check_lock(|| 0, mapped)?;
    Ok(0)
}

fn munlockall(_: Call<'_>) -> Outcome {
    Ok(0)
}
