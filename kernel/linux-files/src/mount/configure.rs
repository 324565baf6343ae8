//! fsopen, fspick, fsconfig, fsmount: a file system step by step.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_raw_sys::general::*;
use mm::user;
use vfs::file::{OpenFile, StatusFlags};
use vfs::mount::{Configuration, Parameter, check_top, open_detached};

use super::tree::{attribute_flags, walk_to};
use super::{Result, check_administrator};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this part.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_fsopen,
        name: "fsopen",
        args: &[Arg::Path, Arg::Flags],
        handler: fsopen,
    },
    Entry {
        number: __NR_fspick,
        name: "fspick",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags],
        handler: fspick,
    },
    Entry {
        number: __NR_fsconfig,
        name: "fsconfig",
        args: &[Arg::Fd, Arg::Int, Arg::Path, Arg::Address, Arg::Int],
        handler: fsconfig,
    },
    Entry {
        number: __NR_fsmount,
        name: "fsmount",
        args: &[Arg::Fd, Arg::Flags, Arg::Flags],
        handler: fsmount,
    },
];

/// The longest name of a kind (the page that Linux copies).
const KIND_BYTES_MAX: usize = 4096;
/// The longest name or value of a parameter.
const TEXT_BYTES_MAX: usize = 256;
/// The longest value that is no text.
const BINARY_BYTES_MAX: i32 = 1 << 20;

/// Commands of fsconfig(2).
const SET_FLAG: u32 = fsconfig_command::FSCONFIG_SET_FLAG as u32;
const SET_STRING: u32 = fsconfig_command::FSCONFIG_SET_STRING as u32;
const SET_BINARY: u32 = fsconfig_command::FSCONFIG_SET_BINARY as u32;
const SET_PATH: u32 = fsconfig_command::FSCONFIG_SET_PATH as u32;
const SET_PATH_EMPTY: u32 = fsconfig_command::FSCONFIG_SET_PATH_EMPTY as u32;
const SET_FD: u32 = fsconfig_command::FSCONFIG_SET_FD as u32;
const CMD_CREATE: u32 = fsconfig_command::FSCONFIG_CMD_CREATE as u32;
const CMD_RECONFIGURE: u32 = fsconfig_command::FSCONFIG_CMD_RECONFIGURE as u32;
const CMD_CREATE_EXCL: u32 = fsconfig_command::FSCONFIG_CMD_CREATE_EXCL as u32;

/// O_CLOEXEC, if bit 0 is set: FSOPEN_CLOEXEC, FSPICK_CLOEXEC and FSMOUNT_CLOEXEC.
fn descriptor_flags(flags: u32) -> u32 {
    (flags & FSOPEN_CLOEXEC) * O_CLOEXEC
}

fn text(call: &Call<'_>, index: usize, bytes_max: usize) -> Result<Vec<u8>> {
    user::read_string(call.addr(index), bytes_max)?.ok_or(Errno::EINVAL)
}

fn fsopen(call: Call<'_>) -> Outcome {
    check_administrator()?;
    let flags = only(call.uint(1), FSOPEN_CLOEXEC)?;
    let configuration = Configuration::open(&text(&call, 0, KIND_BYTES_MAX)?)?;
    let fd = call.open_fd(configuration, StatusFlags::RDWR, descriptor_flags(flags))?;
    Ok(fd)
}

fn fspick(call: Call<'_>) -> Outcome {
    check_administrator()?;
    let known = FSPICK_CLOEXEC | FSPICK_SYMLINK_NOFOLLOW | FSPICK_NO_AUTOMOUNT | FSPICK_EMPTY_PATH;
    let flags = only(call.uint(2), known)?;
    let (follow, empty) = (
        flags & FSPICK_SYMLINK_NOFOLLOW == 0,
        flags & FSPICK_EMPTY_PATH != 0,
    );
    let place = call.place(0, 1, walk_to(follow, empty))?;
    let configuration = Configuration::pick(&check_top(&place)?.block)?;
    let fd = call.open_fd(configuration, StatusFlags::RDWR, descriptor_flags(flags))?;
    Ok(fd)
}

/// The open file, if it is of a configuration.
fn opened(call: &Call<'_>) -> Result<Arc<OpenFile>> {
    let open = call.file(0)?;
    match open.file.as_any().is::<Configuration>() {
        true => Ok(open),
        false => Err(Errno::EINVAL),
    }
}

fn fsconfig(call: Call<'_>) -> Outcome {
    let command = call.uint(1);
    check_arguments(&call, command)?;
    let open = opened(&call)?;
    let any = open.file.as_any();
    let configuration = any.downcast_ref::<Configuration>().ok_or(Errno::EINVAL)?;
    match command {
        CMD_CREATE | CMD_CREATE_EXCL => {
            check_administrator()?;
            configuration.create()?;
        }
        CMD_RECONFIGURE => {
            check_administrator()?;
            configuration.reconfigure()?;
        }
        _ => set(&call, configuration, command)?,
    }
    Ok(0)
}

fn set(call: &Call<'_>, configuration: &Configuration, command: u32) -> Result<()> {
    let name = text(call, 2, TEXT_BYTES_MAX)?;
    let value = match command {
        SET_STRING => text(call, 3, TEXT_BYTES_MAX)?,
        _ => Vec::new(),
    };
    configuration.set(match command {
        SET_FLAG => Parameter::Flag(&name),
        SET_STRING => Parameter::Text(&name, &value),
        _ => Parameter::Other(&name),
    })?;
    Ok(())
}

/// Each command says which of name, value and number it needs and which must be absent.
fn check_arguments(call: &Call<'_>, command: u32) -> Result<()> {
    let (has_name, has_value) = (call.arg(2) != 0, call.arg(3) != 0);
    let number = call.int(4);
    let fits = match command {
        SET_FLAG => has_name && !has_value && number == 0,
        SET_STRING => has_name && has_value && number == 0,
        SET_BINARY => has_name && has_value && (1..=BINARY_BYTES_MAX).contains(&number),
        SET_PATH | SET_PATH_EMPTY => has_name && has_value && (number == AT_FDCWD || number >= 0),
        SET_FD => has_name && !has_value && number >= 0,
        CMD_CREATE | CMD_CREATE_EXCL | CMD_RECONFIGURE => !has_name && !has_value && number == 0,
        _ => return Err(Errno::EOPNOTSUPP),
    };
    match fits && call.int(0) >= 0 {
        true => Ok(()),
        false => Err(Errno::EINVAL),
    }
}

fn fsmount(call: Call<'_>) -> Outcome {
    check_administrator()?;
    let flags = only(call.uint(1), FSMOUNT_CLOEXEC)?;
    let attributes = attribute_flags(u64::from(call.uint(2)))?;
    let open = opened(&call)?;
    let any = open.file.as_any();
    let configuration = any.downcast_ref::<Configuration>().ok_or(Errno::EINVAL)?;
    let mount = configuration.mount(attributes)?;
    Ok(call.new_fd(open_detached(mount)?, descriptor_flags(flags))?)
}
