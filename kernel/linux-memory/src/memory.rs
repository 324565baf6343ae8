//! brk, mmap, munmap, mprotect, mremap.

use alloc::sync::Arc;

use base::VirtAddr;
use linux_raw_sys::general::{
    __NR_brk, __NR_mmap, __NR_mprotect, __NR_mremap, __NR_munmap, __NR_pkey_alloc, __NR_pkey_free,
    __NR_pkey_mprotect, __NR_remap_file_pages, MAP_32BIT, MAP_ANONYMOUS, MAP_DENYWRITE,
    MAP_EXECUTABLE, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN, MAP_HUGETLB, MAP_LOCKED,
    MAP_NONBLOCK, MAP_NORESERVE, MAP_POPULATE, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE,
    MAP_STACK, MAP_TYPE, MREMAP_DONTUNMAP, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_EXEC, PROT_GROWSDOWN,
    PROT_GROWSUP, PROT_READ, PROT_SEM, PROT_WRITE,
};
use mm::commit;
use mm::{AddressSpace, Mapping, Object, Place, Remap, Rights, SharedMemory, Target, Traits};
use sync::{Error, Result};
use vfs::file::OpenFile;
use vfs::seals::Seals;
use vfs::{MountFlags, access_times};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_brk,
        name: "brk",
        args: &[Arg::Address],
        handler: brk,
    },
    Entry {
        number: __NR_mmap,
        name: "mmap",
        args: &[
            Arg::Address,
            Arg::Size,
            Arg::Flags,
            Arg::Flags,
            Arg::Fd,
            Arg::Size,
        ],
        handler: mmap,
    },
    Entry {
        number: __NR_munmap,
        name: "munmap",
        args: &[Arg::Address, Arg::Size],
        handler: munmap,
    },
    Entry {
        number: __NR_mprotect,
        name: "mprotect",
        args: &[Arg::Address, Arg::Size, Arg::Flags],
        handler: mprotect,
    },
    Entry {
        number: __NR_mremap,
        name: "mremap",
        args: &[Arg::Address, Arg::Size, Arg::Size, Arg::Flags, Arg::Address],
        handler: mremap,
    },
    Entry {
        number: __NR_remap_file_pages,
        name: "remap_file_pages",
        args: &[Arg::Address, Arg::Size, Arg::Int, Arg::Int, Arg::Flags],
        handler: remap_file_pages,
    },
    Entry {
        number: __NR_pkey_alloc,
        name: "pkey_alloc",
        args: &[Arg::Flags, Arg::Int],
        handler: no_key,
    },
    Entry {
        number: __NR_pkey_free,
        name: "pkey_free",
        args: &[Arg::Int],
        handler: no_key,
    },
    Entry {
        number: __NR_pkey_mprotect,
        name: "pkey_mprotect",
        args: &[Arg::Address, Arg::Size, Arg::Int, Arg::Int],
        handler: pkey_mprotect,
    },
];

const ALL_RIGHTS: Rights = Rights {
    read: true,
    write: true,
    exec: true,
};

/// The address space of the caller.
pub(crate) fn space(call: &Call<'_>) -> Arc<AddressSpace> {
    call.thread.process.space.get()
}

fn address(at: VirtAddr) -> Outcome {
    Ok(at.0 as usize)
}

fn brk(call: Call<'_>) -> Outcome {
    address(space(&call).set_break(call.addr(0))?)
}

fn rights(bits: u32) -> Rights {
    Rights {
        read: bits & PROT_READ != 0,
        write: bits & PROT_WRITE != 0,
        exec: bits & PROT_EXEC != 0,
    }
}

fn mmap(call: Call<'_>) -> Outcome {
    let (flags, offset) = (call.uint(3), call.arg(5));
    if !offset.is_multiple_of(base::PAGE_BYTES as u64) || call.arg(1) == 0 {
        return Err(Errno::EINVAL);
    }
    if flags & MAP_HUGETLB != 0 {
        return Err(Errno::ENOMEM);
    }
    let bytes = call.arg(1);
    offset.checked_add(bytes).ok_or(Errno::EOVERFLOW)?;
    let shared = is_shared(flags)?;
    let (object, mut limit) = backing(&call, flags, shared, bytes)?;
    let mut access = rights(call.uint(2));
    access.exec |= reads_imply_exec(&call, access) && !forbids_exec(object.as_ref());
    if access.exec && forbids_exec(object.as_ref()) {
        return Err(Errno::EPERM);
    }
    if !limit.covers(access) {
        return Err(Errno::EACCES);
    }
    let open = object.as_ref().and_then(open_file);
    let inode = open.and_then(|open| open.inode().cloned());
    let seals = inode.as_ref().and_then(|inode| inode.seals());
    // No seal is set between the look and the mapping.
    let seals = seals.filter(|_| shared).map(Seals::lock);
    if seals.as_ref().is_some_and(|seals| seals.forbid_stores()) {
        if access.write {
            return Err(Errno::EPERM);
        }
        limit.write = false;
    }
    let mapping = Mapping {
        place: place(call.addr(0), flags),
        bytes,
        access,
        limit,
        traits: Traits {
            shared,
            grows_down: flags & MAP_GROWSDOWN != 0,
            no_reserve: flags & MAP_NORESERVE != 0,
            locked: flags & MAP_LOCKED != 0,
            ..Traits::default()
        },
        object: object.map(|object| (object, if is_anonymous(flags) { 0 } else { offset })),
        populate: flags & MAP_POPULATE != 0 && flags & MAP_NONBLOCK == 0,
    };
    let at = space(&call).map(mapping)?;
    if access.exec {
        perf::note_mappings(call.thread, at..at + bytes);
    }
    address(at)
}

/// Whether the program wants to execute what it asks to read.
fn reads_imply_exec(call: &Call<'_>, access: Rights) -> bool {
    access.read && call.thread.personality.reads_imply_exec()
}

/// The open file that it is mapped through.
fn open_file(object: &Object) -> Option<&OpenFile> {
    OpenFile::of_mapping(object.file.as_ref()?)
}

/// Whether it shows a file from where nothing is executed.
fn forbids_exec(object: Option<&Object>) -> bool {
    let path = object.and_then(|object| open_file(object)?.path.as_ref());
    path.is_some_and(|path| path.mount.has(MountFlags::NOEXEC))
}

fn is_anonymous(flags: u32) -> bool {
    flags & MAP_ANONYMOUS != 0
}

/// The flags that MAP_SHARED_VALIDATE knows, besides sizes of huge pages.
const VALIDATED: u32 = MAP_TYPE
    | MAP_FIXED
    | MAP_ANONYMOUS
    | MAP_DENYWRITE
    | MAP_EXECUTABLE
    | MAP_GROWSDOWN
    | MAP_LOCKED
    | MAP_NORESERVE
    | MAP_POPULATE
    | MAP_NONBLOCK
    | MAP_STACK
    | MAP_32BIT;

fn is_shared(flags: u32) -> core::result::Result<bool, Errno> {
    match flags & MAP_TYPE {
        MAP_PRIVATE => Ok(false),
        MAP_SHARED => Ok(true),
        MAP_SHARED_VALIDATE if flags & !VALIDATED != 0 => Err(Errno::EOPNOTSUPP),
        MAP_SHARED_VALIDATE => Ok(true),
        _ => Err(Errno::EINVAL),
    }
}

fn place(at: VirtAddr, flags: u32) -> Place {
    if flags & MAP_FIXED_NOREPLACE != 0 {
        Place::FixedIfFree(at)
    } else if flags & MAP_FIXED != 0 {
        Place::Fixed(at)
    } else {
        Place::Hint(at)
    }
}

/// What the mapping shows, and what may ever be done with it.
fn backing(
    call: &Call<'_>,
    flags: u32,
    shared: bool,
    bytes: u64,
) -> Result<(Option<Object>, Rights)> {
    if is_anonymous(flags) {
        let memory = || -> Result<Object> {
            let memory = match flags & MAP_NORESERVE != 0 && !commit::is_limited() {
                true => SharedMemory::sparse(bytes),
                false => SharedMemory::new(bytes)?,
            };
            Ok(Object::new(Arc::new(memory), None))
        };
        return Ok((shared.then(memory).transpose()?, ALL_RIGHTS));
    }
    let open = call.file(4)?;
    if !open.is_readable() {
        return Err(Error::AccessDenied);
    }
    let offset = call.arg(5);
    let range = offset..offset.saturating_add(bytes);
    let memory = open.file.clone().map(range, shared)?;
    access_times::note_read(&open);
    let write = !shared || open.is_writable();
    let limit = Rights {
        write,
        ..ALL_RIGHTS
    };
    Ok((Some(Object::new(memory, Some(open))), limit))
}

fn munmap(call: Call<'_>) -> Outcome {
    space(&call).unmap(call.addr(0), call.arg(1))?;
    Ok(0)
}

fn mprotect(call: Call<'_>) -> Outcome {
    let bits = call.uint(2);
    let known = PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP;
    if bits & !known != 0 {
        return Err(Errno::EINVAL);
    }
    let mut access = rights(bits);
    access.exec |= reads_imply_exec(&call, access);
    space(&call).protect(call.addr(0), call.arg(1), access)?;
    Ok(0)
}

/// Keys of protection are the processor's, and not switched on.
fn no_key(_: Call<'_>) -> Outcome {
    Err(Errno::EINVAL)
}

/// The key -1 stands for none.
fn pkey_mprotect(call: Call<'_>) -> Outcome {
    match call.int(3) {
        -1 => mprotect(call),
        _ => Err(Errno::EINVAL),
    }
}

fn remap_file_pages(call: Call<'_>) -> Outcome {
    let start = call.addr(0).page_floor();
    let bytes = call.arg(1) & !(base::PAGE_BYTES as u64 - 1);
    if call.arg(2) != 0 || bytes == 0 {
        return Err(Errno::EINVAL);
    }
    space(&call).show_file_pages(start, bytes, call.arg(3))?;
    Ok(0)
}

fn mremap(call: Call<'_>) -> Outcome {
    let flags = call.uint(3);
    let (may_move, fixed) = (flags & MREMAP_MAYMOVE != 0, flags & MREMAP_FIXED != 0);
    let keep_old = flags & MREMAP_DONTUNMAP != 0;
    let known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    let sizes_differ = call.arg(1) != call.arg(2);
    if flags & !known != 0 || (!may_move && (fixed || keep_old)) || (keep_old && sizes_differ) {
        return Err(Errno::EINVAL);
    }
    let target = match (may_move, fixed) {
        (_, true) => Target::Fixed(call.addr(4)),
        (true, false) => Target::Anywhere,
        (false, false) => Target::Stay,
    };
    let request = Remap {
        start: call.addr(0),
        old_bytes: call.arg(1),
        new_bytes: call.arg(2),
        target,
        keep_old,
    };
    address(space(&call).remap(request)?)
}
