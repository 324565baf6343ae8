//! AF_XDP: a program and the kernel hand whole Ethernet frames to each other in rings of memory
//! that both have mapped.
//!
//! The problem: a program that is to see each frame of a link cannot pay a system call for each.
//! It writes into the shared memory whatever it likes, whenever it likes, and may harm only itself.
//!
//! The idea: the program registers memory of its own, the UMEM, which is cut into chunks of one size
//! ([`Umem`]). Chunks go round by their addresses in it, in four rings of one producer and one
//! consumer each:
//!
//! ```text
//!              fill: chunks that may be written to
//!  program ─────────────────────────────────────────▶ kernel ┐ Receiver
//!          ◀───────────────────────────────────────── kernel ┘
//!              rx: chunks with a frame in them
//!
//!              tx: chunks with a frame in them
//!  program ─────────────────────────────────────────▶ kernel ┐ Sender
//!          ◀───────────────────────────────────────── kernel ┘
//!              completion: chunks whose frames are sent
//! ```
//!
//! The kernel keeps its own ends of the rings to itself and only shows them ([`Consumer`],
//! [`Producer`]); what it reads of the other end is bounded by the ring's size, each entry is
//! read once and checked. A whole batch is shown at once. Nobody remembers whose a chunk is: a
//! program that gives one twice gets two frames in it.
//!
//! # Invariants
//! - **Inside:** what is written or read of the UMEM lies within one chunk, and so within a page.
//! - **Counted:** each frame that a ring has no place for, and each entry that makes no sense, is
//!   counted under one name ([`Statistics`]).
//! - **Complete:** an entry of tx that is taken and makes sense comes back by the completion ring.
//!
//! Layouts, numbers and limits are Linux's (include/uapi/linux/if_xdp.h, `net/xdp`).
//! Not here: chunks that are not aligned (XDP_UMEM_UNALIGNED_CHUNK_FLAG), frames of several chunks
//! (XDP_USE_SG), metadata in front of a frame; the UMEM's pages, the copy, files and links.
#![no_std]
#![forbid(unsafe_code)]

mod descriptor;
mod program;
mod receive;
mod ring;
mod statistics;
mod transmit;
mod umem;

pub use descriptor::{DESCRIPTOR_BYTES, Descriptor};
pub use program::{ProgramConsumer, ProgramProducer};
pub use receive::{Dropped, Receiver};
pub use ring::{Consumer, Entry, Geometry, NEED_WAKEUP, Producer, offset};
pub use statistics::Statistics;
pub use transmit::{Sender, TURN_FRAMES, Turn};
pub use umem::{FRAME_HEADROOM, Refusal, Umem, UmemRequest};
