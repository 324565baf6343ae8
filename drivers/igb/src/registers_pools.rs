//! Registers of pools and mailboxes (7.10, 8.14): what the physical function has for its
//! virtual ones, and what those see in the 16 KiB of their own.

/// Bytes that a virtual function's registers take: all of its base address 0. Those of
/// interrupts, control and status lie where the physical function has its own.
pub(crate) const VF_BYTES: usize = 0x4000;
/// Its only pair of rings.
pub(crate) const VF_RX_RING: usize = 0x2800;
pub(crate) const VF_TX_RING: usize = 0x3800;
/// Its half of the mailbox, and the mailbox' memory.
pub(crate) const VF_MAILBOX: usize = 0x0c40;
pub(crate) const VF_MAILBOX_MEMORY: usize = 0x0800;
/// A message lies there; the other side has taken one; who holds the memory.
pub(crate) const VF_REQUEST: u32 = 1 << 0;
pub(crate) const VF_TAKEN: u32 = 1 << 1;
pub(crate) const VF_HOLDS: u32 = 1 << 2;
/// Set by the physical function, and cleared when they are read: it sent, it has taken.
pub(crate) const VF_PF_SENT: u32 = 1 << 4;
pub(crate) const VF_PF_TAKEN: u32 = 1 << 5;
/// The physical function is being reset.
pub(crate) const VF_PF_IN_RESET: u32 = 1 << 6;

/// The physical function's half of the mailbox of virtual function `n`, and its memory.
pub(crate) const fn pf_mailbox(vf: u16) -> usize {
    0x0c00 + 4 * vf as usize
}
pub(crate) const fn pf_mailbox_memory(vf: u16) -> usize {
    0x0800 + 0x40 * vf as usize
}
pub(crate) const PF_SEND: u32 = 1 << 0;
pub(crate) const PF_TAKE: u32 = 1 << 1;
pub(crate) const PF_HOLDS: u32 = 1 << 3;
/// Takes the memory away from a virtual function that does not let go of it.
pub(crate) const PF_SEIZE: u32 = 1 << 4;
/// A bit for each virtual function that asked; writing one clears it. From bit 16 on, for each
/// that has taken an answer.
pub(crate) const MBVFICR: usize = 0x0c80;
pub(crate) const MBVFICR_TAKEN_SHIFT: u32 = 16;
/// Which of them interrupt.
pub(crate) const MBVFIMR: usize = 0x0c84;
/// A bit for each virtual function that was reset; writing one clears it.
pub(crate) const VFLRE: usize = 0x0c88;
/// A bit for each pool that receives, and that sends.
pub(crate) const VFRE: usize = 0x0c8c;
pub(crate) const VFTE: usize = 0x0c90;

/// Queues that drop what they have no buffer for, instead of holding up the others.
pub(crate) const QDE: usize = 0x2408;
pub(crate) const QDE_ALL: u32 = 0xffff;
/// The switch between pools: bits 0 to 7, whose source addresses are checked, 8 to 15, whose
/// VLANs are.
pub(crate) const DTXSWC: usize = 0x3500;
pub(crate) const DTXSWC_VLAN_SHIFT: u32 = 8;
pub(crate) const DTXSWC_LOOPBACK: u32 = 1 << 31;
/// `MRQC`: frames go to pools, by address and VLAN.
pub(crate) const MRQC_POOLS: u32 = 0b011;
/// Which pool takes what no filter claims, and whether a frame may go to several.
pub(crate) const VT_CTL: usize = 0x581c;
pub(crate) const VT_CTL_DEFAULT_SHIFT: u32 = 7;
pub(crate) const VT_CTL_NO_DEFAULT: u32 = 1 << 29;
pub(crate) const VT_CTL_REPLICATE: u32 = 1 << 30;
/// What pool `n` takes, and what is done to its frames.
pub(crate) const fn vmolr(pool: u16) -> usize {
    0x5ad0 + 4 * pool as usize
}
pub(crate) const VMOLR_UNTAGGED: u32 = 1 << 24;
pub(crate) const VMOLR_GROUPS: u32 = 1 << 25;
pub(crate) const VMOLR_BROADCAST: u32 = 1 << 27;
pub(crate) const VMOLR_TAKE_TAGS: u32 = 1 << 30;
pub(crate) const VMOLR_STRIP_FCS: u32 = 1 << 31;
/// What is done to frames for several pools.
pub(crate) const RPLOLR: usize = 0x5af0;
/// VLAN filter `n`: an identifier, a bit for each pool, and whether it counts.
pub(crate) const fn vlvf(filter: usize) -> usize {
    0x5d00 + 4 * filter
}
pub(crate) const VLVF_FILTERS: usize = 32;
pub(crate) const VLVF_POOLS_SHIFT: u32 = 12;
pub(crate) const VLVF_VALID: u32 = 1 << 31;
/// Of a unicast filter: the first pool that it is for.
pub(crate) const ADDRESS_POOLS_SHIFT: u32 = 18;
