//! The pages of files, the same for every file system that keeps its bytes elsewhere.
//!
//! # Problem
//! A file's bytes are in three places: in pages that programs map, in buffers of read(2) and
//! write(2), and below, on a disk or at the host. They have to look like one, while memory is
//! short, while somebody cuts the file off, and while what is below fails.
//!
//! # Idea
//! A [`Cache`] has the pages of one inode; what differs between file systems is a [`Backing`]. One
//! that [keeps all](Keeps::All) pages is read by pages only, and reads ahead. One that keeps what is
//! mapped ([`Keeps::Mapped`]: a folder of the host, whose files others change) reads around them.
//!
//! - `read`: read(2), and bringing pages in
//! - `write`: write(2), into pages, or `through` to what is below
//! - `fault`: a page for a program's mapping
//! - `write_back`: dirty pages to what is below, in runs
//! - `resize`: pages that a file loses
//! - `flusher`: who does that when nobody asks, and who waits when there is too much
//! - `memory`: where pages come from, and who gives some up; the machine's figures
//!
//! # Invariants
//! - **Heard**: a page that is not marked `Stored` is mapped writable nowhere, so the next store
//!   to it faults and is heard of. Who writes a stored page back first takes the right to store
//!   away.
//! - **Promised is kept**: a dirty page has its room below, or was promised it; a promise ends when
//!   the page is brought down, or lost. But for one that the kernel has stored to for a program after its room was lost:
//!   its write-back takes what there is, and says so if there is none.
//! - **Dirty is inside**: the size covers a page before it is marked dirty, since what is beyond
//!   the size is not brought down.
//! - **Held is kept**: a page that anybody but the index owns is not given up, so who holds one
//!   may change it and mark it afterwards.
//!
//! # Lock order
//! A file's `writing`, then its `flushing`, then what the backing locks, then spin locks (`pages`,
//! then none). Programs' memory is touched only without them: it may be a mapping of this
//! very file.
//!
//! Not here: which pages are dirty and what is read ahead (`core/pagecache`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cache;
mod fault;
mod flusher;
mod memory;
mod read;
mod resize;
mod through;
mod write;
mod write_back;

pub use cache::{Backing, Cache, Keeps};
pub use fault::{make_room, mark_dirty, mark_stored, page, ready_page, ready_pages};
pub use flusher::{Flush, SETTINGS, Settings, flush_all, register, run as run_flusher};
pub use memory::{PageCounts, counts};
pub use read::read_at;
pub use resize::{resize, zero};
pub use write::write_at;
pub use write_back::{close, insist, write_back};

use base::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
