//! Memory policies: each thread takes memory of its CPU's node, and no other can be set.

use base::{PAGE_BYTES, VirtAddr};
use kernel::user;
use linux_raw_sys::general::{__NR_get_mempolicy, __NR_set_mempolicy};
use linux_raw_sys::mempolicy::{MPOL_F_ADDR, MPOL_F_MEMS_ALLOWED, MPOL_F_NODE};

use crate::call::{Arg, Call, Entry, Outcome};
use crate::errno::Errno;
use crate::memory::space;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_set_mempolicy,
        name: "set_mempolicy",
        args: &[Arg::Int, Arg::Address, Arg::Size],
        handler: set_mempolicy,
    },
    Entry {
        number: __NR_get_mempolicy,
        name: "get_mempolicy",
        args: &[
            Arg::Address,
            Arg::Address,
            Arg::Size,
            Arg::Address,
            Arg::Flags,
        ],
        handler: get_mempolicy,
    },
];

/// MPOL_DEFAULT: the mode of every thread.
const DEFAULT: u32 = 0;
/// MPOL_PREFERRED and MPOL_LOCAL: without a node, other names of the same.
const PREFERRED: u32 = 1;
const LOCAL: u32 = 4;
const BITS_PER_WORD: usize = u64::BITS as usize;

/// set_mempolicy(2): memory of the CPU's own node can be asked for, by each of its names.
fn set_mempolicy(call: Call<'_>) -> Outcome {
    let mode = call.uint(0);
    let is_empty = match call.optional_addr(1) {
        Some(at) => is_mask_empty(at, mask_bytes(call.size(2))?)?,
        None => true,
    };
    match mode {
        DEFAULT | PREFERRED | LOCAL if is_empty => Ok(0),
        DEFAULT | LOCAL => Err(Errno::EINVAL),
        _ => {
            crate::missing::count_option("set_mempolicy", u64::from(mode));
            Err(Errno::EINVAL)
        }
    }
}

/// Bytes of a mask when `bits`, one too many, are told of; a page at most.
fn mask_bytes(bits: usize) -> Result<u64, Errno> {
    let bytes = bits.saturating_sub(1).div_ceil(BITS_PER_WORD) * size_of::<u64>();
    if bytes > PAGE_BYTES {
        return Err(Errno::EINVAL);
    }
    Ok(bytes as u64)
}

fn is_mask_empty(at: VirtAddr, bytes: u64) -> Result<bool, Errno> {
    for offset in (0..bytes).step_by(size_of::<u64>()) {
        if user::read::<u64>(at + offset)? != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// get_mempolicy(2): the mode and the mask are asked for by pointers that are not null.
fn get_mempolicy(call: Call<'_>) -> Outcome {
    const KNOWN: u32 = MPOL_F_NODE | MPOL_F_ADDR | MPOL_F_MEMS_ALLOWED;
    let (flags, nodes) = (call.uint(4), mach::numa::nodes());
    let is_mask_short = call.optional_addr(1).is_some() && call.size(2) < nodes;
    if flags & !KNOWN != 0 || is_mask_short {
        return Err(Errno::EINVAL);
    }
    let has_address = call.optional_addr(3).is_some();
    let (mode, mask) = match flags {
        MPOL_F_MEMS_ALLOWED => (DEFAULT, (1 << nodes) - 1),
        0 if !has_address => (DEFAULT, 0),
        MPOL_F_ADDR => {
            node_at(&call)?;
            (DEFAULT, 0)
        }
        _ if flags == MPOL_F_ADDR | MPOL_F_NODE => (node_at(&call)?, 0),
        _ => return Err(Errno::EINVAL),
    };
    if let Some(at) = call.optional_addr(0) {
        user::write(at, mode)?;
    }
    write_mask(&call, mask)?;
    Ok(0)
}

/// The node of the page at the address that is asked about; brings it in if need be.
fn node_at(call: &Call<'_>) -> Result<u32, Errno> {
    let at = call.addr(3);
    let _present: u8 = user::read(at)?;
    Ok(u32::from(space(call).node_of(at)?.0))
}

/// Nodes are below 64; the mask's words behind the first are zeros.
fn write_mask(call: &Call<'_>, mask: u64) -> Result<(), Errno> {
    let Some(at) = call.optional_addr(1) else {
        return Ok(());
    };
    let bytes = mask_bytes(call.size(2))?;
    for offset in (0..bytes).step_by(size_of::<u64>()) {
        let word = if offset == 0 { mask } else { 0 };
        user::write(at + offset, word)?;
    }
    Ok(())
}
