//! The terminals' device numbers and nodes (tty(4), pts(4)).
//!
//! A pseudo terminal has a node /dev/pts/N while its master is open. Nodes are made and
//! removed in devtmpfs, wherever that is mounted, by the kernel: whoever opens the master owns the
//! node, be it that he may not write there. Group and mode are those with which Debian mounts
//! devpts, and no umask changes them.

use alloc::format;
use alloc::sync::Arc;

use super::{Terminal, TerminalFile, console, pty};
use fs_tmp::devtmpfs;
use sync::{Error, Result};
use vfs::access::{Subject, Who};
use vfs::devices::{Device, register};
use vfs::file::{FileRef, OpenFile, StatusFlags};
use vfs::names::{create_by_kernel, unlink_by_kernel};
use vfs::{
    FileType, LastComponent, New, OpenHow, Path, Walk, device_number, device_parts, mount, open,
    open_path, resolve, resolve_parent,
};

/// Linux's major numbers of serial ports and of the terminals with special meaning.
const MAJOR_SERIAL: u32 = 4;
const MAJOR_SPECIAL: u32 = 5;
/// The first serial port.
const MINOR_SERIAL: u32 = 64;
/// Permission bits of a pseudo terminal: its owner, and the group tty for write(1).
const MODE_PTS: u32 = 0o620;
const GROUP_TTY: u32 = 5;

/// Adds /dev/console, /dev/tty, /dev/ttyS0, /dev/ptmx and the numbers of pseudo terminals.
pub(super) fn register_all() {
    let special = |name, minor, mode, open| {
        register(Device {
            name,
            major: MAJOR_SPECIAL,
            minors: (minor, minor),
            mode,
            open,
        });
    };
    special("tty", 0, 0o666, open_controlling);
    special("console", 1, 0o600, open_console);
    special("ptmx", 2, 0o666, open_multiplexer);
    register(Device {
        name: "ttyS0",
        major: MAJOR_SERIAL,
        minors: (MINOR_SERIAL, MINOR_SERIAL),
        mode: 0o600,
        open: open_console,
    });
    register(Device {
        name: "",
        major: pty::MAJOR,
        minors: (0, pty::PAIRS_MAX - 1),
        mode: MODE_PTS,
        open: open_pseudo,
    });
}

fn open_controlling(_number: u64, _status: StatusFlags) -> Result<FileRef> {
    let terminal = super::controlling_terminal().ok_or(Error::NoSuchDevice)?;
    terminal.check_open()?;
    Ok(TerminalFile::new(terminal))
}

fn open_console(_number: u64, status: StatusFlags) -> Result<FileRef> {
    let file = console::open()?;
    if let Some(file) = file.as_any().downcast_ref::<TerminalFile>() {
        file.terminal.check_open()?;
        control_by_opening(&file.terminal, status);
    }
    Ok(file)
}

fn open_multiplexer(_number: u64, _status: StatusFlags) -> Result<FileRef> {
    Ok(pty::open_master()?)
}

fn open_pseudo(number: u64, status: StatusFlags) -> Result<FileRef> {
    let (_, minor) = device_parts(number);
    let file = pty::open_slave(minor)?;
    file.terminal.check_open()?;
    control_by_opening(&file.terminal, status);
    Ok(file)
}

/// A session's leader without a terminal gets the one it opens, unless it says O_NOCTTY.
fn control_by_opening(terminal: &Arc<Terminal>, status: StatusFlags) {
    if !status.contains(StatusFlags::NOCTTY) {
        // Who leads no session, or has a terminal, only opens it.
        let _ = terminal.take_control();
    }
}

/// Makes the node of a pseudo terminal.
pub(super) fn add_node(number: u32) -> Result<()> {
    let component = node_parent(number)?;
    let (uid, _) = Subject::current(Who::Effective).ids();
    let new = New {
        kind: FileType::CharDevice,
        mode: MODE_PTS,
        uid,
        gid: GROUP_TTY,
        device: device_number(pty::MAJOR, number),
        target: &[],
    };
    create_by_kernel(&component, &new)
}

/// Removes it.
pub(super) fn remove_node(number: u32) {
    // A program may have removed it already.
    let _ = node_parent(number).and_then(|component| unlink_by_kernel(&component));
}

/// Opens it by its node, so that the open file has a name.
pub(super) fn open_node(number: u32, status: StatusFlags) -> Result<Arc<OpenFile>> {
    let how = OpenHow {
        status,
        ..OpenHow::READ
    };
    let path = format!("dev/pts/{number}");
    match open(Some(&mount::root()), path.as_bytes(), &how) {
        Err(Error::NotFound) => open_path(node_place(number)?, &how),
        result => result,
    }
}

fn node_place(number: u32) -> Result<Path> {
    let path = format!("pts/{number}");
    resolve(devtmpfs::top(), path.as_bytes(), Walk::empty())
}

/// Where the node is, whatever is mounted on /dev.
fn node_parent(number: u32) -> Result<LastComponent> {
    let path = format!("pts/{number}");
    resolve_parent(devtmpfs::top(), path.as_bytes(), Walk::empty())
}
