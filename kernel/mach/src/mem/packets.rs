//! The list of the machine's packet buffers.
//!
//! It is a global because buffers are not anybody's: a driver's queue, a socket and a page that
//! was lent give them back from wherever they are. Who decides how many there are is
//! `kernel/net`.

use mbuf::{FreeList, Magazine};

use crate::cpu::{MAX_CPUS, id};

/// Each CPU's own.
static MAGAZINES: [Magazine; MAX_CPUS] = [const { Magazine::new() }; MAX_CPUS];

// SAFETY: by **One flow per CPU** a CPU's number names one flow of control, and nothing else
// uses the magazines.
/// Free packet buffers, a magazine of them for each CPU. Of the machine: a buffer passes from card
/// to socket to card, whoever they belong to.
pub static PACKETS: FreeList = unsafe { FreeList::with_magazines(&MAGAZINES, || id().index()) };
