//! What a program needs of the system to move its own frames: packet memory that the kernel shares,
//! four rings, and the socket that they belong to (AF_XDP, `docs/rings.md`); or a card of its own, with its registers,
//! memory and interrupt ([`vfio`]); or an area of a disk, with a ring to it ([`AreaQueue`], `docs/vsa.md`).
//!
//! # Problem
//! A frame that the kernel has written into a program's memory should be a packet buffer at once,
//! and one that the program sends should be read where it lies. But then the kernel writes and
//! reads memory that Rust's references may point into.
//!
//! # Idea
//! The chunks of the UMEM *are* the blocks of an [`mbuf`] pool ([`Umem`]): a block's header lies in front
//! of what the kernel ever writes in a chunk. Whoever gives a chunk to the kernel gives an
//! [`Mbuf`](mbuf::Mbuf) away, and gets it back when the kernel has given the chunk back ([`Exchange`]).
//! All above is safe Rust.
//!
//! ```text
//! Umem::alloc ─▶ Mbuf ─▶ fill ring ─▶ kernel ─▶ rx ring ─▶ Mbuf with a frame ─▶ network stack
//! network stack ─▶ Chain ─▶ tx ring ─▶ kernel ─▶ completion ring ─▶ dropped: back to the pool
//! ```
//!
//! # Invariants (cited by the `SAFETY` comments)
//! - **Mapped:** the pages of a mapping (`mapping`) are mapped, initialised and readable and writable
//!   from its making to its drop, at one place, and are nobody else's.
//! - **Home:** a UMEM is unmapped only if all of its blocks are at home in their pool; else it stays
//!   mapped for ever.
//! - **Kept:** while the kernel may write to a chunk the exchange keeps the chunk's only `Mbuf`, and while it may
//!   read a frame one that counts in the block. What the kernel writes begins
//!   [`FRAME_HEADROOM`](xdp::FRAME_HEADROOM) bytes into a chunk, so never in a header.
//! - **Apart:** buffers of block memory have pages of their own; a range of pages is a buffer's or free, never both. What a device
//!   may write to is nobody's buffer: who gave it away gets it back when the device is done with it.
//! - **Words:** ring memory is reached by raw pointers only, within its bounds, and its words by atomics.
//!
//! # Not here
//! Protocols and the event loop (`sietch-io`). Programs that fork keep the socket in both processes, but the
//! chunks are the parent's alone and are not mapped in the child: it must not touch the queue.

mod area;
mod arm_poll;
mod blocks;
mod card;
mod clock;
mod edges;
mod exchange;
mod exit_cost;
mod filter;
mod frame_io;
mod interface;
mod kick_cost;
mod loans;
mod look;
mod mapping;
mod port_mirror;
#[cfg(test)]
mod quiet_port;
mod ring;
pub mod simulated;
mod socket;
mod stack_table;
mod umem;
pub mod vfio;
mod wait;

pub use area::{AreaQueue, AreaWait, Ended};
pub use blocks::{BlockMemory, Buffer};
pub use card::Card;
pub use clock::Clock;
pub use edges::{Edges, Ready};
pub use exchange::{Count, Counts, Exchange, Rings};
pub use filter::Filter;
pub use frame_io::{AnyIo, FrameIo};
pub use interface::Interface;
pub use look::Wanting;
pub use port_mirror::PortMirror;
pub use ring::RingMemory;
pub use socket::{Setup, XdpSocket};
pub use stack_table::TableMemory;
pub use umem::{CHUNK_BYTES, Umem};
pub use wait::{wait_for, wait_for_edge};

/// Seconds and nanoseconds of the monotonic clock, as nanoseconds.
#[inline]
pub fn monotonic_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Fills `to` with bytes that nobody can guess.
pub fn random(to: &mut [u8]) -> std::io::Result<()> {
    let mut done = 0;
    while done < to.len() {
        done += rustix::rand::getrandom(&mut to[done..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}
