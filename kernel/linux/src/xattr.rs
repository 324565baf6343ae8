//! Extended attributes: no file has any.

use kernel::fs::Walk;
use linux_raw_sys::general::*;

use crate::call::{Arg, Call, Entry, Outcome};
use crate::errno::Errno;

const BY_PATH: &[Arg] = &[Arg::Path, Arg::Path, Arg::Address, Arg::Size];
const BY_FD: &[Arg] = &[Arg::Fd, Arg::Path, Arg::Address, Arg::Size];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_setxattr,
        name: "setxattr",
        args: BY_PATH,
        handler: refuse,
    },
    Entry {
        number: __NR_lsetxattr,
        name: "lsetxattr",
        args: BY_PATH,
        handler: refuse,
    },
    Entry {
        number: __NR_fsetxattr,
        name: "fsetxattr",
        args: BY_FD,
        handler: refuse,
    },
    Entry {
        number: __NR_getxattr,
        name: "getxattr",
        args: BY_PATH,
        handler: get,
    },
    Entry {
        number: __NR_lgetxattr,
        name: "lgetxattr",
        args: BY_PATH,
        handler: get,
    },
    Entry {
        number: __NR_fgetxattr,
        name: "fgetxattr",
        args: BY_FD,
        handler: get_opened,
    },
    Entry {
        number: __NR_listxattr,
        name: "listxattr",
        args: BY_PATH,
        handler: list,
    },
    Entry {
        number: __NR_llistxattr,
        name: "llistxattr",
        args: BY_PATH,
        handler: list,
    },
    Entry {
        number: __NR_flistxattr,
        name: "flistxattr",
        args: BY_FD,
        handler: list_opened,
    },
    Entry {
        number: __NR_removexattr,
        name: "removexattr",
        args: BY_PATH,
        handler: refuse,
    },
    Entry {
        number: __NR_lremovexattr,
        name: "lremovexattr",
        args: BY_PATH,
        handler: refuse,
    },
    Entry {
        number: __NR_fremovexattr,
        name: "fremovexattr",
        args: BY_FD,
        handler: refuse,
    },
    Entry {
        number: __NR_name_to_handle_at,
        name: "name_to_handle_at",
        args: &[
            Arg::DirFd,
            Arg::Path,
            Arg::Address,
            Arg::Address,
            Arg::Flags,
        ],
        handler: refuse,
    },
];

fn refuse(_call: Call<'_>) -> Outcome {
    Err(Errno::EOPNOTSUPP)
}

fn get(call: Call<'_>) -> Outcome {
    call.place_here(0, Walk::empty())?;
    Err(Errno::ENODATA)
}

fn get_opened(call: Call<'_>) -> Outcome {
    call.file(0)?;
    Err(Errno::ENODATA)
}

fn list(call: Call<'_>) -> Outcome {
    call.place_here(0, Walk::empty())?;
    Ok(0)
}

fn list_opened(call: Call<'_>) -> Outcome {
    call.file(0)?;
    Ok(0)
}
