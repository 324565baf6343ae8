//! Memory policies: each thread takes memory of its CPU's node.
//!
//! On a machine of one node every policy that can be set comes to the same, so it is only
//! remembered. On others those that would make a difference are refused. Policies of
//! parts of memory and pages' moves are in [`crate::page_nodes`].

use core::sync::atomic::Ordering::Relaxed;

use base::{PAGE_BYTES, VirtAddr};
use linux_raw_sys::general::{__NR_get_mempolicy, __NR_set_mempolicy};
use linux_raw_sys::mempolicy::{
    MPOL_F_ADDR, MPOL_F_MEMS_ALLOWED, MPOL_F_NODE, MPOL_F_NUMA_BALANCING, MPOL_F_RELATIVE_NODES,
    MPOL_F_STATIC_NODES, MPOL_MODE_FLAGS,
};
use mm::user;

use crate::memory::space;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

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

/// What follows the CPU's own node, and what there is beside.
const DEFAULT: u32 = 0;
const PREFERRED: u32 = 1;
const BIND: u32 = 2;
const INTERLEAVE: u32 = 3;
const LOCAL: u32 = 4;
const PREFERRED_MANY: u32 = 5;
const MODES: u32 = 7;
/// How a mask is meant.
const MASK_FLAGS: u32 = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES;
const BITS_PER_WORD: usize = u64::BITS as usize;
/// Numbers of nodes that Linux knows; masks may name those that are not there.
const NODES_MAX: usize = 1024;

/// set_mempolicy(2).
fn set_mempolicy(call: Call<'_>) -> Outcome {
    let policy = read_policy(call.uint(0), call.optional_addr(1), call.size(2))?;
    call.thread.memory_policy.store(policy, Relaxed);
    Ok(0)
}

/// A policy with its flags, which must have no other effect than that of this system.
pub(crate) fn read_policy(word: u32, at: Option<VirtAddr>, bits: usize) -> Result<u32, Errno> {
    let (flags, mode) = (word & MPOL_MODE_FLAGS, word & !MPOL_MODE_FLAGS);
    let is_balanced = flags & MPOL_F_NUMA_BALANCING != 0;
    let is_known = mode < MODES && flags & MASK_FLAGS != MASK_FLAGS;
    if !is_known || is_balanced && !matches!(mode, BIND | PREFERRED_MANY) {
        return Err(Errno::EINVAL);
    }
    let mask = read_mask(at, bits)?;
    match (mode, mask) {
        (DEFAULT, 0) => Ok(DEFAULT),
        (PREFERRED | LOCAL, 0) if flags & MASK_FLAGS == 0 => Ok(LOCAL),
        (DEFAULT | LOCAL, _) | (_, 0) => Err(Errno::EINVAL),
        _ if flags & MPOL_F_RELATIVE_NODES == 0 && mask & all_nodes() == 0 => Err(Errno::EINVAL),
        _ if mach::numa::nodes() == 1 => Ok(word),
        _ => {
            linux_abi::missing::count_option("set_mempolicy", u64::from(mode));
            Err(Errno::EINVAL)
        }
    }
}

/// A mask of all nodes.
pub(crate) fn all_nodes() -> u64 {
    (1 << mach::numa::nodes()) - 1
}

/// The first nodes of a mask of which `bits`, one too many, are told. Nodes that no machine
/// of Linux has are an error.
pub(crate) fn read_mask(at: Option<VirtAddr>, bits: usize) -> Result<u64, Errno> {
    let bits = bits.wrapping_sub(1);
    let Some(at) = at.filter(|_| bits != 0) else {
        return Ok(0);
    };
    if bits > PAGE_BYTES * 8 {
        return Err(Errno::EINVAL);
    }
    let mut first = 0;
    for index in 0..bits.div_ceil(BITS_PER_WORD) {
        let mut word: u64 = user::read(at + (index * size_of::<u64>()) as u64)?;
        if index == bits / BITS_PER_WORD {
            word &= (1 << (bits % BITS_PER_WORD)) - 1;
        }
        match index {
            0 => first = word,
            _ if word != 0 && index >= NODES_MAX / BITS_PER_WORD => return Err(Errno::EINVAL),
            _ => {}
        }
    }
    Ok(first)
}

/// Bytes of a mask when `bits`, one too many, are told of; a page at most.
fn mask_bytes(bits: usize) -> Result<u64, Errno> {
    let bytes = bits.saturating_sub(1).div_ceil(BITS_PER_WORD) * size_of::<u64>();
    if bytes > PAGE_BYTES {
        return Err(Errno::EINVAL);
    }
    Ok(bytes as u64)
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
    let policy = call.thread.memory_policy.load(Relaxed);
    let policy_mask = match policy {
        DEFAULT | LOCAL => 0,
        _ => all_nodes(),
    };
    let (mode, mask) = match flags {
        MPOL_F_MEMS_ALLOWED => (DEFAULT, all_nodes()),
        0 if !has_address => (policy, policy_mask),
        MPOL_F_ADDR => {
            node_at(&call)?;
            (policy, policy_mask)
        }
        // The node of the next page; there is but one.
        MPOL_F_NODE if policy & !MPOL_MODE_FLAGS == INTERLEAVE && !has_address => (0, policy_mask),
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
