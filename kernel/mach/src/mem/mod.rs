//! Memory of the machine: frames, pages, page tables, user copies, the kernel's heap.
//!
//! The problem: hand physical memory to safe code. Everything above this module owns
//! memory as values ([`Page`], [`PageTable`], `hal::DmaBuf`, boxes) and can not name
//! an address that it does not own.
//!
//! The idea: all RAM is mapped once at [`arch::layout::DIRECT_MAP`]; a [`Page`] is a
//! counted claim on one frame and is read and written by copying through that map. A
//! [`PageTable`] owns the pages that it maps. Pages leave it through a [`Gather`],
//! which drops them only after no CPU can still translate to them ([`tlb`]).
//!
//! Invariants (cited by the `SAFETY` comments):
//! - **Direct**: every frame that the frame table describes is mapped, writable and not
//!   executable, at `DIRECT_MAP` plus its physical address, on every CPU, for good.
//! - **Claim**: memory of a frame in use is touched only through its owners: pages and
//!   user mappings copy by raw pointers (no Rust reference to it exists, but for those by
//!   which a packet that was lent a page is read: `mbuf`'s **Unsteady**); heap, tables,
//!   stacks and DMA memory are exclusive to their owner.
//! - **Tables**: a frame that a page table links to is a table of that page table alone, and
//!   lives until it was unlinked ([`PageTable::sweep`]) or the page table is dropped.
//! - **Leaf**: an entry with `PRESENT` or `HELD` in a user table owns one count of its frame,
//!   unless it has `ZEROS`: then it shows the page of zeros, read-only.
//! - **Late**: a frame that a CPU may still translate to is not given back.
//! - **Shared half**: the top-level entries of the kernel's half are made in [`init`] and
//!   are equal in all page tables.
//!
//! Lock order: a page table's lock, then the depot's, then one zone's.
//!
//! Not here: which address means what (`mm`), page caches, resolving faults.

mod device;
mod direct;
mod dma;
mod entry;
pub mod fallible;
mod fork;
mod gather;
mod heap;
mod kernel_map;
mod kernel_tlb;
mod large;
mod leaf;
mod packets;
mod page;
mod peek;
mod pinned;
mod ram;
mod relocate;
mod remapping;
mod resting;
mod setup;
mod spares;
pub(crate) mod stack;
mod string;
mod sweep;
mod table;
mod tlb;
mod user;
mod vmalloc;
mod walk;
mod zeros;

use base::CpuId;

pub use device::map_device;
pub(crate) use direct::physical_of;
pub use dma::{contiguous_pages, seen_at};
pub use entry::{Mapping, Prot};
pub use frames::reserve_of;
pub use gather::Gather;
pub use heap::{ClassStats, class_stats, heap_bytes};
pub use large::{LARGE_PAGE_BYTES, LargePage, large_pages};
pub use leaf::Leaf;
pub use packets::PACKETS;
pub use page::Page;
pub(crate) use peek::peek;
pub use pinned::{Pinned, Reached};
pub use ram::{
    MemoryStats, cache_stats, cache_stats_of, is_short, is_tight, node_of, shortage, stats,
    total_frames, zone_stats,
};
pub(crate) use ram::{idle, settle};
pub use remapping::{DmaMapper, DmaMemory, NotMapped, remap_by};
pub use resting::{pile_up, resting_bytes, trim};
pub(crate) use setup::init;
pub(crate) use stack::top as stack_top;
pub use stack::{KernelStack, STACK_BYTES};
pub use table::{NoLeaf, PIECE_BYTES, PageTable};
pub(crate) use tlb::{enable_tags, rest, wake};
pub use tlb::{enter_kernel_table, tlb_events};
pub use user::{
    Fault, Pod, USER_END, compare_exchange_user_u32, copy_from_user, copy_to_user, fill_user,
    load_user_u32, load_user_u64, store_user_u32, store_user_u64,
};
pub(crate) use user::{load_vectors, save_vectors};

/// Makes what `cpu` has for itself of memory, before it is started.
pub(crate) fn add_cpu(cpu: CpuId) {
    heap::add_cpu(cpu);
    ram::add_cpu(cpu);
    tlb::add_cpu(cpu);
    fallible::add_cpu(cpu);
}
