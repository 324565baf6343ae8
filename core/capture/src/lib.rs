//! What a sniffer reads: a ring of packets that it shares with the kernel, and files of them.
//!
//! # Problem
//! `tcpdump` must see a million packets a second without a call for each. It maps memory that
//! the kernel fills (`PACKET_RX_RING`, `TPACKET_V3`): blocks of many packets each, which change
//! hands by one word. The program may be slow, absent or hostile: it can write whatever it
//! likes into that memory at any time.
//!
//! # Idea
//! [`Ring`] is the kernel's half as a state machine without memory of its own: it writes
//! through [`RingMemory`] and reads a single word, which says whether the program is done
//! with a block. All else (where the next packet goes, how many there are) it keeps to
//! itself. A block is handed over when the next packet does not fit or when it has waited
//! long enough; if the program still has the next one, the ring is *frozen* and packets are
//! dropped and counted until it gives that back.
//!
//! ```text
//!          packet does not fit, or the timer: hand over, take the next
//!        ┌────────────┐
//!        ▼            │          the program has the next one
//!     filling ────────┴──────────────────────────────▶ frozen
//!        ▲                                                │
//!        └────────────────────────────────────────────────┘
//!             a packet or the timer finds it given back
//! ```
//!
//! # Invariants
//! - **Owned:** the ring writes only to the block that it fills, and hands it over last of all.
//! - **Inside:** each write lies in the block, whatever the shared memory says.
//! - **Counted:** each packet is in a block or is a drop with a reason.
//!
//! [`SlotRing`] is the same for version 2, whose packets have slots of their own.
//! [`pcapng`] writes the files that Wireshark reads.
//!
//! Sources: `linux/if_packet.h`, `Documentation/networking/packet_mmap.rst` and the behaviour of
//! `net/packet/af_packet.c`; for files, draft-ietf-opsawg-pcapng.
//! Not here: sockets, filters (`core/bpf`), rings of version 1 and for sending,
//! `PACKET_VNET_HDR`, and the mapping itself.
#![no_std]
#![forbid(unsafe_code)]

mod bytes;
mod frame;
mod geometry;
mod layout;
mod memory;
pub mod pcapng;
mod ring;
mod slots;

pub use frame::{Frame, Sender, Tag};
pub use geometry::{Geometry, Refusal, RingRequest, View};
pub use layout::status;
pub use memory::RingMemory;
pub use ring::{Captured, DropReason, Drops, Now, Ring, Statistics, Timestamp};
pub use slots::{SlotGeometry, SlotRing};
