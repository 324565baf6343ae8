//! madvise, msync, mincore, mlock and its kin.

use alloc::vec::Vec;
use core::ops::Range;

use linux_raw_sys::general::{
    __NR_madvise, __NR_mincore, __NR_mlock, __NR_mlock2, __NR_mlockall, __NR_msync, __NR_munlock,
    __NR_munlockall, MADV_COLD, MADV_COLLAPSE, MADV_DODUMP, MADV_DOFORK, MADV_DONTDUMP,
    MADV_DONTFORK, MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE, MADV_HUGEPAGE, MADV_KEEPONFORK,
    MADV_MERGEABLE, MADV_NOHUGEPAGE, MADV_NORMAL, MADV_PAGEOUT, MADV_POPULATE_READ,
    MADV_POPULATE_WRITE, MADV_RANDOM, MADV_SEQUENTIAL, MADV_UNMERGEABLE, MADV_WILLNEED,
    MADV_WIPEONFORK, MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT, MLOCK_ONFAULT, MS_ASYNC, MS_INVALIDATE,
    MS_SYNC,
};
use mm::io::UserRange;
use mm::user;
use mm::{Advice, Locking, Object, Synced, Touch};
use sched::resched_point;
use vfs::file::OpenFile;

use crate::memory::space;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

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
const MINCORE_PAGES: u64 = 1024;
const PAGE: u64 = base::PAGE_BYTES as u64;

fn madvise(call: Call<'_>) -> Outcome {
    let (start, bytes) = (call.addr(0), call.arg(1));
    let advice = match call.uint(2) {
        MADV_DONTNEED => Advice::Discard,
        MADV_FREE => Advice::Free,
        MADV_DONTNEED_LOCKED => Advice::DiscardLocked,
        MADV_POPULATE_READ => Advice::Populate(Touch::Read),
        MADV_POPULATE_WRITE => Advice::Populate(Touch::Write),
        MADV_COLD | MADV_PAGEOUT => Advice::PageOut,
        MADV_DONTFORK => Advice::Fork(false),
        MADV_DOFORK => Advice::Fork(true),
        MADV_WIPEONFORK => Advice::WipeOnFork(true),
        MADV_KEEPONFORK => Advice::WipeOnFork(false),
        MADV_HUGEPAGE => Advice::LargePages(true),
        MADV_NOHUGEPAGE => Advice::LargePages(false),
        // Advice about speed and dumps; there is nothing to do.
        MADV_NORMAL | MADV_RANDOM | MADV_SEQUENTIAL | MADV_WILLNEED | MADV_COLLAPSE
        | MADV_MERGEABLE | MADV_UNMERGEABLE | MADV_DONTDUMP | MADV_DODUMP => Advice::Nothing,
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
    let how = match flags & MS_SYNC != 0 {
        true => Synced::Durable,
        false => Synced::Written,
    };
    space(&call).sync(start, bytes, |object, bytes| bring(object, bytes, how))?;
    Ok(0)
}

/// Also says what the open file has not told yet: bytes that could not be brought out, in whosever name that was tried.
fn bring(object: &Object, bytes: Range<u64>, how: Synced) -> sync::Result<()> {
    let brought = object.memory.sync(bytes, how);
    let open = object.file.as_ref().and_then(OpenFile::of_mapping);
    match open.filter(|_| how == Synced::Durable) {
        Some(open) => brought.and(open.tell_failures()),
        None => brought,
    }
}

fn mincore(call: Call<'_>) -> Outcome {
    let (start, bytes) = (call.addr(0), call.arg(1));
    if start.page_offset() != 0 {
        return Err(Errno::EINVAL);
    }
    let end = start.checked_add(bytes).ok_or(Errno::ENOMEM)?;
    UserRange::new(call.addr(2), bytes.div_ceil(PAGE) as usize)?;
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
        resched_point();
    }
    Ok(0)
}

fn mlock(call: Call<'_>) -> Outcome {
    space(&call).lock_pages(call.addr(0), call.arg(1), Locking::Now)?;
    Ok(0)
}

fn mlock2(call: Call<'_>) -> Outcome {
    only(call.uint(2), MLOCK_ONFAULT)?;
    let locking = locking(call.uint(2) & MLOCK_ONFAULT != 0);
    space(&call).lock_pages(call.addr(0), call.arg(1), locking)?;
    Ok(0)
}

fn locking(on_fault: bool) -> Locking {
    match on_fault {
        true => Locking::OnFault,
        false => Locking::Now,
    }
}

fn munlock(call: Call<'_>) -> Outcome {
    space(&call).unlock_pages(call.addr(0), call.arg(1))?;
    Ok(0)
}

fn mlockall(call: Call<'_>) -> Outcome {
    let flags = call.uint(0);
    only(flags, MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)?;
    let has = |flag| flags & flag != 0;
    if !has(MCL_CURRENT) && !has(MCL_FUTURE) {
        return Err(Errno::EINVAL);
    }
    space(&call).lock_all(locking(has(MCL_ONFAULT)), has(MCL_CURRENT), has(MCL_FUTURE))?;
    Ok(0)
}

fn munlockall(call: Call<'_>) -> Outcome {
    space(&call).unlock_all()?;
    Ok(0)
}
