//! Sockets and counters of stacks in programs (`user/preload`, `docs/bypass.md`), for tools that list sockets.
//!
//! # Problem
//! A program with a link or a card of its own has its connections in its own memory, and `ss` asks the kernel. Such a program
//! may hang, end in any moment, and say anything.
//!
//! # Idea
//! The program has a table ([`inet::StackTable`]) in pages of the kernel's that it maps ([`device`]). Who lists sockets
//! tells all programs that it looks, waits for their answers for [`PATIENCE`] together, and then reads what is there.
//! Nobody looks: nobody writes.
//!
//! # What a program may say
//! - A row has a port, never an address of the program's own: that is the table's, for which it needed CAP_NET_ADMIN and, if the
//!   link is an interface, a queue of it. An address of the stack's on another interface is nobody's ([`Published::is_true`]); that is asked
//!   again whenever somebody looks.
//! - A row has a descriptor and not an inode: the inode is that of the socket that the *owner* has under that number, or none. So nobody can
//!   show a socket as another program's.
//! - There are [`TABLES_MAX`] tables of [`ROWS_MAX`](inet::stack_table::ROWS_MAX) rows at most, and a row that makes no sense is none.
//!
//! A table is its owner's alone: it is gone with the file's last descriptor, and is not shown when the owner has ended,
//! whoever has inherited the descriptor.
//!
//! # Lock order
//! The list of tables is innermost and held for moments; rows are read, and descriptors looked up, without it.
//!
//! Not here: what a row's words mean (`core/inet`), when programs write them (`user/preload`).

mod device;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use base::Duration;
use inet::stack_table::{StackCounter, StackRow, StackTable};
use mach::sync::Spin;
use mm::shared_pages::SharedPages;
use net::{NetStack, plan};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait, WaitQueue};
use task::Process;
use vfs::socket::InterfaceName;

use crate::listing::InetSocket;

pub use device::register;

/// Tables at most.
const TABLES_MAX: usize = 64;
/// How long a listing waits for the programs' answers, for all of them together: a loaded one looks after 80 ms.
const PATIENCE: Duration = Duration::from_millis(250);
/// A program is asked no more often than this.
const APART: Duration = Duration::from_millis(10);

/// All of them: who lists sockets looks through those of all programs.
static TABLES: Spin<[Option<Arc<Published>>; TABLES_MAX]> = Spin::new([const { None }; TABLES_MAX]);
/// Listings that wait for answers.
static ANSWERS: WaitQueue = WaitQueue::new();

/// The link of a program: an interface's name, or a card's place on the bus.
type LinkName = InterfaceName;

/// What a program shows.
struct Published {
    memory: Arc<SharedPages>,
    rows: usize,
    address: Ipv4Addr,
    link: LinkName,
    of: Weak<NetStack>,
    owner: Weak<Process>,
    asked: AtomicU32,
    asked_at_ns: AtomicU64,
    pollee: Pollee,
}

impl Published {
    fn table(&self) -> StackTable<&SharedPages> {
        StackTable::new(&*self.memory, self.rows)
    }

    fn owner(&self) -> Option<Arc<Process>> {
        self.owner.upgrade().filter(|owner| !owner.has_ended())
    }

    /// Whether the owner has the link, and the address is not one of the stack's elsewhere.
    fn is_true(&self, of: &Arc<NetStack>) -> bool {
        let Some(owner) = self.owner() else {
            return false;
        };
        let interface = of.interface_named(self.link.as_bytes());
        let number = interface.as_ref().map(|interface| interface.number);
        let has_link = number.is_none_or(|number| net::has_queue(of, number, owner.id()));
        let ip = IpAddr::V4(self.address);
        let mut addresses = plan::addresses(of).into_iter();
        has_link && !addresses.any(|one| one.ip == ip && Some(one.interface) != number)
    }

    fn is_in(&self, of: &Arc<NetStack>) -> bool {
        self.of.as_ptr() == Arc::as_ptr(of)
    }

    /// Tells the program that somebody looks, unless that was said a moment ago.
    fn ask(&self) {
        let now = mach::time::now();
        let apart = now
            .as_nanos()
            .saturating_sub(self.asked_at_ns.load(Relaxed));
        if apart >= APART.as_nanos() {
            self.asked_at_ns.store(now.as_nanos(), Relaxed);
            let asked = self.asked.fetch_add(1, Relaxed).wrapping_add(1);
            self.table().ask(asked);
            self.pollee.notify(Events::READABLE);
        }
    }

    fn is_answered(&self) -> bool {
        self.table().answered() == self.asked.load(Relaxed)
    }

    fn socket(&self, row: usize, owner: &Process) -> Option<InetSocket> {
        let words = self.table().read_row(row)?;
        let row = StackRow::decode(&words, self.address)?;
        let number = row.number.and_then(|number| inode(owner, number));
        Some(InetSocket::in_program(number.unwrap_or(0), &row.socket))
    }
}

/// The inode of the socket that a process has under a number.
fn inode(owner: &Process, number: u32) -> Option<u64> {
    let files = owner.first_thread()?.files.get();
    let open = files.get_any(number).ok()?;
    open.file.as_socket()?;
    Some(open.metadata().ok()?.number)
}

/// Adds a table.
///
/// Errors: `NoBuffers` if there are too many, `AddressInUse` if it says what its owner may not.
fn publish(table: &Arc<Published>, of: &Arc<NetStack>) -> Result<()> {
    if !table.is_true(of) {
        return Err(Error::AddressInUse);
    }
    let mut all = TABLES.lock();
    let free = all.iter_mut().find(|slot| slot.is_none());
    *free.ok_or(Error::NoBuffers)? = Some(table.clone());
    Ok(())
}

/// Takes it away.
fn withdraw(table: &Arc<Published>) {
    let is_it = |slot: &&mut Option<Arc<Published>>| {
        slot.as_ref().is_some_and(|other| Arc::ptr_eq(other, table))
    };
    let gone = TABLES.lock().iter_mut().find(is_it).and_then(Option::take);
    drop(gone);
}

/// A table of a stack, by its place.
fn find(of: &Arc<NetStack>, place: u16) -> Option<Arc<Published>> {
    let found = TABLES.lock().get(usize::from(place)).cloned().flatten();
    found.filter(|table| table.is_in(of))
}

/// Has the programs of a stack's tables write them anew. Those that do not in time show what they did before. Must not run
/// with a spin lock held.
pub(crate) fn refresh(of: &Arc<NetStack>) {
    let places = 0..TABLES_MAX as u16;
    let asked: Vec<_> = places.filter_map(|place| find(of, place)).collect();
    asked.iter().for_each(|table| table.ask());
    let answered = || asked.iter().all(|table| table.is_answered()).then_some(());
    let how = Wait::INTERRUPTIBLE.until(mach::time::now() + PATIENCE);
    // Whatever ends the wait, it is time to look.
    let _ = ANSWERS.wait(how, answered);
}

/// The sockets of some rows of the table at `place`, and where to go on; `None` behind the last table.
pub(crate) fn sockets(
    of: &Arc<NetStack>,
    (place, rows): (u16, Range<usize>),
    mut sink: impl FnMut(usize, InetSocket),
) -> Option<(u16, usize)> {
    if usize::from(place) >= TABLES_MAX {
        return None;
    }
    let table = find(of, place).filter(|table| table.is_true(of));
    let owned = table.and_then(|table| Some((table.owner()?, table)));
    let Some((owner, table)) = owned else {
        return Some((place + 1, 0));
    };
    let count = table.table().count();
    for row in rows.start..rows.end.min(count) {
        if let Some(socket) = table.socket(row, &owner) {
            sink(row, socket);
        }
    }
    Some(match rows.end < count {
        true => (place, rows.end),
        false => (place + 1, 0),
    })
}

/// What a program's stack has counted.
pub struct StackCounters {
    /// The program.
    pub process: u32,
    /// Its link.
    pub link: LinkName,
    /// Its address there.
    pub address: Ipv4Addr,
    /// The counts.
    pub counters: Vec<StackCounter>,
}

/// What the stacks in programs have counted. Must not run with a spin lock held.
pub fn counters(of: &Arc<NetStack>) -> Vec<StackCounters> {
    refresh(of);
    let tables = (0..TABLES_MAX as u16).filter_map(|place| find(of, place));
    let of_table = |table: Arc<Published>| {
        Some(StackCounters {
            process: table.owner()?.id(),
            link: table.link,
            address: table.address,
            counters: table.table().read_counters(),
        })
    };
    let shown = tables.filter(|table| table.is_true(of));
    shown.filter_map(of_table).collect()
}
