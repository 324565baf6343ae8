//! mbind, migrate_pages, move_pages: on which node pages are to lie, and on which they do.
//!
//! No page is ever moved to another node: one that would have to be is told to be busy. On a
//! machine of one node all lie where they should.

use alloc::sync::Arc;

use base::{PAGE_BYTES, VirtAddr};
use cred::Capability;
use linux_raw_sys::general::{__NR_mbind, __NR_migrate_pages, __NR_move_pages};
use linux_raw_sys::mempolicy::{MPOL_MF_MOVE, MPOL_MF_MOVE_ALL, MPOL_MF_VALID};
use mm::AddressSpace;
use mm::user;
use sync::Error;
use task::{self, Caller, check_process_access};

use crate::memory::space;
use crate::mempolicy::{all_nodes, read_mask, read_policy};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_mbind,
        name: "mbind",
        args: &[
            Arg::Address,
            Arg::Size,
            Arg::Int,
            Arg::Address,
            Arg::Size,
            Arg::Flags,
        ],
        handler: mbind,
    },
    Entry {
        number: __NR_migrate_pages,
        name: "migrate_pages",
        args: &[Arg::Int, Arg::Size, Arg::Address, Arg::Address],
        handler: migrate_pages,
    },
    Entry {
        number: __NR_move_pages,
        name: "move_pages",
        args: &[
            Arg::Int,
            Arg::Size,
            Arg::Address,
            Arg::Address,
            Arg::Address,
            Arg::Flags,
        ],
        handler: move_pages,
    },
];

/// Numbers of nodes end here in Linux.
const NODES_MAX: i32 = 1024;

fn check_flags(call: &Call<'_>, flags: u32, known: u32) -> Result<(), Errno> {
    only(flags, known)?;
    if flags & MPOL_MF_MOVE_ALL != 0 {
        call.thread
            .credentials
            .with(|who| who.require(Capability::SysNice))?;
    }
    Ok(())
}

/// mbind(2): what may be asked for is so already, so only the range has to be there.
fn mbind(call: Call<'_>) -> Outcome {
    read_policy(call.uint(2), call.optional_addr(3), call.size(4))?;
    check_flags(&call, call.uint(5), MPOL_MF_VALID)?;
    let start = call.addr(0);
    if start != start.page_floor() {
        return Err(Errno::EINVAL);
    }
    let bytes = call.arg(1).checked_next_multiple_of(PAGE_BYTES as u64);
    let bytes = bytes.ok_or(Errno::EINVAL)?;
    start.0.checked_add(bytes).ok_or(Errno::EINVAL)?;
    if bytes != 0 {
        space(&call).check_mapped(start, bytes)?;
    }
    Ok(0)
}

/// Somebody's memory, for who may look into it.
fn space_of(call: &Call<'_>, id: i32) -> Result<Arc<AddressSpace>, Errno> {
    if id == 0 {
        return Ok(space(call));
    }
    let id = u32::try_from(id).map_err(|_| Errno::ESRCH)?;
    let thread = task::find_thread(id).ok_or(Errno::ESRCH)?;
    check_process_access(&thread.process, Caller::Real)?;
    Ok(thread.process.space.get())
}

/// migrate_pages(2): how many could not be moved.
fn migrate_pages(call: Call<'_>) -> Outcome {
    let bits = call.size(1);
    let from = read_mask(call.optional_addr(2), bits)?;
    let to = read_mask(call.optional_addr(3), bits)?;
    space_of(&call, call.int(0))?;
    if to & !all_nodes() != 0 {
        call.thread
            .credentials
            .with(|who| who.require(Capability::SysNice))?;
    }
    if to & all_nodes() == 0 {
        return Err(Errno::EINVAL);
    }
    if from & all_nodes() & !to != 0 {
        linux_abi::missing::count_option("migrate_pages", to);
    }
    Ok(0)
}

/// move_pages(2): where each page lies, and whether that is where it should.
fn move_pages(call: Call<'_>) -> Outcome {
    check_flags(&call, call.uint(5), MPOL_MF_MOVE | MPOL_MF_MOVE_ALL)?;
    let space = space_of(&call, call.int(0))?;
    for index in 0..call.arg(1) {
        sched::resched_point();
        if call.thread.has_deliverable_signal() {
            return Err(Errno::EINTR);
        }
        let at: u64 = user::read(element(call.addr(2), index, 8))?;
        let wanted = match call.optional_addr(3) {
            Some(nodes) => Some(wanted_node(user::read(element(nodes, index, 4))?)?),
            None => None,
        };
        let status = status_of(&space, VirtAddr(at), wanted);
        user::write(element(call.addr(4), index, 4), status)?;
    }
    Ok(0)
}

/// A sum that wraps is refused where it is read.
fn element(start: VirtAddr, index: u64, bytes: u64) -> VirtAddr {
    VirtAddr(start.0.wrapping_add(index.wrapping_mul(bytes)))
}

fn wanted_node(node: i32) -> Result<i32, Errno> {
    match node {
        0..NODES_MAX if all_nodes().checked_shr(node as u32).unwrap_or(0) & 1 != 0 => Ok(node),
        _ => Err(Errno::ENODEV),
    }
}

/// The page's node, or an error's number as the program is told it.
fn status_of(space: &AddressSpace, at: VirtAddr, wanted: Option<i32>) -> i32 {
    let is_there = space.check_mapped(at.page_floor(), PAGE_BYTES as u64);
    let node = is_there.and_then(|()| space.node_of(at).map_err(|_| Error::NotFound));
    let why = match node.map(|node| i32::from(node.0)) {
        Ok(node) if wanted.is_none_or(|wanted| wanted == node) => return node,
        Ok(_) => Errno::EBUSY,
        Err(error) => Errno::from(error),
    };
    -i32::from(why.number())
}
