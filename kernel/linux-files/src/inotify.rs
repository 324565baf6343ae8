//! inotify_init, inotify_add_watch, inotify_rm_watch.

use alloc::sync::Arc;

use linux_raw_sys::general::*;
use vfs::access::{READ, Subject, Who};
use vfs::file::{OpenFile, StatusFlags};
use vfs::notify::{self, Existing, Instance, Mask};
use vfs::{self, Walk};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_inotify_init,
        name: "inotify_init",
        args: &[],
        handler: init,
    },
    Entry {
        number: __NR_inotify_init1,
        name: "inotify_init1",
        args: &[Arg::Flags],
        handler: init1,
    },
    Entry {
        number: __NR_inotify_add_watch,
        name: "inotify_add_watch",
        args: &[Arg::Fd, Arg::Path, Arg::Flags],
        handler: add_watch,
    },
    Entry {
        number: __NR_inotify_rm_watch,
        name: "inotify_rm_watch",
        args: &[Arg::Fd, Arg::Int],
        handler: remove_watch,
    },
];

/// All events that a program may ask for (IN_ALL_EVENTS).
const EVENTS: u32 = 0xfff;

fn init(call: Call<'_>) -> Outcome {
    make(&call, 0)
}

fn init1(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(0), O_NONBLOCK | O_CLOEXEC)?;
    make(&call, flags)
}

fn make(call: &Call<'_>, flags: u32) -> Outcome {
    let status = StatusFlags::from_bits_truncate(flags & O_NONBLOCK);
    let open = OpenFile::new(Instance::new()?, status);
    Ok(call.new_fd(open, flags)?)
}

fn instance(open: &OpenFile) -> Result<Arc<Instance>, Errno> {
    let instance = open
        .file
        .as_any()
        .downcast_ref::<Instance>()
        .ok_or(Errno::EINVAL)?;
    instance.arc().ok_or(Errno::EINVAL)
}

fn add_watch(call: Call<'_>) -> Outcome {
    let flags = call.uint(2);
    let open = call.file(0)?;
    let instance = instance(&open)?;
    if flags & EVENTS == 0 || flags & IN_MASK_ADD != 0 && flags & IN_MASK_CREATE != 0 {
        return Err(Errno::EINVAL);
    }
    let mut walk = Walk::empty();
    walk.set(Walk::FOLLOW, flags & IN_DONT_FOLLOW == 0);
    walk.set(Walk::DIRECTORY, flags & IN_ONLYDIR != 0);
    let place = vfs::resolve(None, &call.path(1)?, walk)?;
    Subject::current(Who::Effective).check(&place.inode().metadata()?, READ)?;
    let mask = Mask::from_bits_truncate(flags & (EVENTS | IN_ONESHOT | IN_EXCL_UNLINK));
    let existing = match flags & (IN_MASK_ADD | IN_MASK_CREATE) {
        0 => Existing::Replaced,
        IN_MASK_ADD => Existing::Extended,
        _ => Existing::Refused,
    };
    let id = notify::watch(&instance, place.inode(), mask, existing)?;
    Ok(id as usize)
}

fn remove_watch(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    notify::unwatch(&instance(&open)?, call.int(1))?;
    Ok(0)
}
