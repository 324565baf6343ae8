//! Cards that programs drive themselves, as packet sockets see them: mirror ports.
//!
//! # Problem
//! Frames of such a card lie in its program's memory only, and `tcpdump` asks the kernel.
//!
//! # Idea
//! As a switch copies what passes a port to its mirror port, the program's driver writes each frame to [`device`] while a word in a page
//! that the kernel shares with it says that there are packet sockets. There are none: that is one load for a frame.
//! The card is an [`Interface`] without a shard: it has a number and a name, and no address, route or neighbour.
//!
//! # What a program may say
//! It needs CAP_NET_ADMIN. It shows frames of its own interface only, whose name follows from the card's place on the bus; nothing
//! that it says reaches a stack. There are [`MIRRORS_MAX`] mirrors. One is gone with its file's last descriptor.
//!
//! # Lock order
//! The list of mirrors, and under it nothing. Interfaces are added and removed without it.
//!
//! Not here: whether the program has the card, which `kernel/vfio` knows; what the card has counted (`kstat -p sietch`).

mod device;
mod name;

use alloc::sync::Arc;

use base::{PAGE_BYTES, SharedMemory};
use mach::sync::Spin;
use mbuf::{Chain, Checksum, ChecksumOffload, RxFrame, TxFrame};
use mm::shared_pages::{PageBudget, SharedPages};
use sync::{Error, Result};
use vfs::socket::InterfaceName;
use wire::MacAddr;

use super::{is_watched, tap};
use crate::stack::NetStack;

pub use device::register;

/// Mirrors at most, of all stacks.
const MIRRORS_MAX: usize = 64;

/// All of them: each is told when the first packet socket comes and when the last one goes.
static MIRRORS: Spin<[Option<Arc<SharedPages>>; MIRRORS_MAX]> =
    Spin::new([const { None }; MIRRORS_MAX]);
/// Their pages: far less than this share of the smallest machine's memory.
static BUDGET: PageBudget = PageBudget::share_of_memory(64);

/// Where in its page a program reads whether frames are to be shown; 0 if not.
const WATCHED_AT: usize = 0;

/// Whether there are packet sockets has changed.
pub(super) fn tell() {
    let all = MIRRORS.lock();
    // Under the lock: of two changes at once the later one is told last.
    let word = is_watched().into();
    let pages = all.iter().flatten();
    pages.for_each(|page| page.store(WATCHED_AT, word));
}

/// A card's mirror; its interface is gone when it is dropped.
struct Mirror {
    page: Arc<SharedPages>,
    stack: Arc<NetStack>,
    /// Its interface.
    number: u32,
}

/// Which way a frame goes, and whether its checksum is left to the card.
#[derive(Clone, Copy)]
struct Passing {
    is_outgoing: bool,
    is_sum_partial: bool,
}

impl Mirror {
    /// Errors: `Exists` if the stack has an interface of that name, `NoBuffers` at the limit, `OutOfMemory`.
    fn new(stack: Arc<NetStack>, name: InterfaceName, mac: MacAddr, mtu: u16) -> Result<Self> {
        let page = SharedPages::new(PAGE_BYTES, &BUDGET, "/dev/portmirror")?;
        let facts = inet::Port {
            mac,
            mtu,
            offloads: inet::Offloads::default(),
        };
        let number = stack.add_mirrored(name, &facts)?;
        let mirror = Self {
            page,
            stack,
            number,
        };
        let mut all = MIRRORS.lock();
        let free = all.iter_mut().find(|slot| slot.is_none());
        *free.ok_or(Error::NoBuffers)? = Some(mirror.page.clone());
        drop(all);
        tell();
        Ok(mirror)
    }

    /// Shows a frame to whoever looks.
    fn show(&self, chain: Chain, how: Passing) {
        let partial = how.is_sum_partial.then_some(ChecksumOffload {
            start: 0,
            offset: 0,
        });
        let stack = &self.stack.shared;
        match how.is_outgoing {
            true => {
                let frame = TxFrame {
                    chain,
                    checksum: partial,
                    ..TxFrame::default()
                };
                tap::sent(stack, self.number, &frame);
            }
            false => {
                let checksum = partial.map_or(Checksum::Unknown, Checksum::Partial);
                let frame = RxFrame {
                    chain,
                    checksum,
                    ..RxFrame::default()
                };
                tap::received(stack, self.number, &frame);
            }
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let is_it = |slot: &&mut Option<Arc<SharedPages>>| {
            slot.as_ref()
                .is_some_and(|page| Arc::ptr_eq(page, &self.page))
        };
        let gone = MIRRORS.lock().iter_mut().find(is_it).and_then(Option::take);
        drop(gone);
        self.stack.remove_interface(self.number);
    }
}
