//! Who waits for a socket, and what is known of it without asking its stack.
//!
//! The problem: a program that waits by epoll has each connection asked twice for each
//! request whether there is something to read, before and after it reads; each time by the
//! lock of the connection's shard, which another CPU may hold.
//!
//! The idea: the answer changes only where the shard is locked anyway. Who reads notes what is
//! left: nothing, or bytes. From then on a wake-up for bytes and nothing else notes bytes. After
//! any other wake-up, and any call that does not just move bytes, it is unknown, and the stack
//! is asked.
//!
//! Invariant **Told**: while `known` is not `UNKNOWN`, no end, error or hang-up is there, for
//! the stack wakes (`inet::Env::wake`) when one comes, as all who wait rely on. `known` is
//! written only under the lock of the socket's shard.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use mach::sync::Spin;
use sync::poll::{Events, Pollee};

use super::env::events_of;
use super::member_list::MemberList;
use sockets::SocketFilter;

const UNKNOWN: u8 = 0;
const NOTHING: u8 = 1;
const BYTES: u8 = 2;

/// Who waits for one socket.
pub struct Waiter {
    /// The number of the socket's file; also in /proc/net and for `ss -e`.
    pub number: u64,
    /// Who is told of events.
    pub pollee: Pollee,
    /// What the socket wants of what arrives.
    pub filter: SocketFilter,
    /// Its members in other shards than its location's.
    pub members: MemberList,
    /// Held while names are given and members made, so that this happens once.
    pub naming: Spin<()>,
    /// The interface that it is bound to (SO_BINDTODEVICE), or 0.
    pub device: AtomicU32,
    /// The interface by which it sends to groups (IP_MULTICAST_IF), or 0.
    pub group_device: AtomicU32,
    /// The address of IPv4 by which the program named that interface, or 0.
    pub group_source: AtomicU32,
    known: AtomicU8,
}

impl Waiter {
    /// Nobody waits yet; the number is that of a new file.
    pub fn numbered() -> Self {
        Self {
            number: vfs::file::next_number(),
            pollee: Pollee::new(),
            filter: SocketFilter::default(),
            members: MemberList::default(),
            naming: Spin::new(()),
            device: AtomicU32::new(0),
            group_device: AtomicU32::new(0),
            group_source: AtomicU32::new(0),
            known: AtomicU8::new(UNKNOWN),
        }
    }

    /// Passes on what the stack says.
    #[inline]
    pub(crate) fn tell(&self, events: inet::Events) {
        let is_for_bytes = events == inet::Events::READABLE;
        let was_known = self.known.load(Ordering::Relaxed) != UNKNOWN;
        self.set(match is_for_bytes && was_known {
            true => BYTES,
            false => UNKNOWN,
        });
        self.pollee.notify(events_of(events));
    }

    /// A program has read, and the stack says what is true but for being writable.
    #[inline]
    pub fn after_read(&self, to_read: inet::Events) {
        self.set(match () {
            () if to_read.is_empty() => NOTHING,
            () if to_read == inet::Events::READABLE => BYTES,
            () => UNKNOWN,
        });
    }

    /// A call may change anything.
    #[inline]
    pub fn forget(&self) {
        self.set(UNKNOWN);
    }

    /// What is true but for being writable, if it is known.
    #[inline]
    pub fn known(&self) -> Option<Events> {
        match self.known.load(Ordering::SeqCst) {
            NOTHING => Some(Events::empty()),
            BYTES => Some(Events::READABLE),
            _ => None,
        }
    }

    /// Who is told afterwards sees it: an entry of an epoll first says that it looks, then
    /// looks.
    #[inline]
    fn set(&self, known: u8) {
        if self.known.load(Ordering::Relaxed) != known {
            self.known.store(known, Ordering::SeqCst);
        }
    }
}
