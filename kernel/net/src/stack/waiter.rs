//! Who waits for a socket, and what is known of it without asking its stack.
//!
//! The problem: a program that waits by epoll has each connection asked twice for each
//! request whether there is something to read, before and after it reads; a read that finds
//! nothing asks, and asks twice more before it waits. Each time by the lock of the connection's
//! shard, which another CPU may hold: that of the peer, within loopback.
//!
//! The idea: the answer changes only where the shard is locked anyway. Who reads notes what is
//! left: nothing, or bytes. From then on a wake-up for bytes and nothing else notes bytes. After
//! any other wake-up, and any call that does not just move bytes, it is unknown, and the stack
//! is asked.
//!
//! A socket with members in several shards has the same problem with each of them, and most have
//! nothing ever: those of interfaces that nobody uses. So a bit for each shard says whether its
//! member may have something (`heard`). A wake-up sets it, and who finds nothing there clears it.
//!
//! A datagram socket's sends ask each time by which shard they leave. What does not change from
//! one to the next is remembered as well (`sends`): that the socket has no address, or where a
//! connected one sends, as long as no interface changes what it reaches.
//!
//! Invariant **Told**: while `known` is not `UNKNOWN`, no end, error or hang-up is there, for
//! the stack wakes (`inet::Env::wake`) when one comes, as all who wait rely on. `known` and `sends` are
//! written only under the lock of the socket's shard, and a member's bit of `heard` is cleared only
//! under the lock of that member's.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use mach::sync::Spin;
use sync::Result;
use sync::poll::{Events, Pollee};

use super::env::events_of;
use super::location::Location;
use super::member_list::MemberList;
use sockets::SocketFilter;

const UNKNOWN: u8 = 0;
const NOTHING: u8 = 1;
const BYTES: u8 = 2;

/// Shards from this one on share a bit, which stays set.
const SHARED_BIT: u16 = 63;

/// Nothing is known of a socket's sends.
const ASK: u64 = 0;
/// It has no address of its own.
const WITHOUT_ADDRESS: u64 = 1;
/// It has one of loopback.
const LOOPBACK_ADDRESS: u64 = 2;
/// It is connected, and sends by the shard in the lowest bits, as of the epoch in the highest.
const CONNECTED: u64 = 1 << 16;
const EPOCH_SHIFT: u32 = 32;

/// Who waits for one socket.
pub struct Waiter {
    /// The number of the socket's file; also in /proc/net and for `ss -e`.
    pub number: u64,
    /// Who is told of events.
    pub pollee: Pollee,
    /// What the socket wants of what arrives.
    pub filter: SocketFilter,
    /// Its members in other shards than its location's, which is the first where it has any.
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
    heard: AtomicU64,
    sends: AtomicU64,
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
            heard: AtomicU64::new(bit(0)),
            sends: AtomicU64::new(ASK),
        }
    }

    /// Adds members, which may have something already.
    ///
    /// Errors: `OutOfMemory`.
    pub fn add_members(&self, members: &[Location]) -> Result<()> {
        let bits = members
            .iter()
            .fold(0, |bits, member| bits | bit(member.shard));
        self.heard.fetch_or(bits, Ordering::SeqCst);
        self.members.add(members)
    }

    /// Takes note of what the stack of a shard says; its lock is held.
    #[inline]
    pub(crate) fn note(&self, shard: u16, events: inet::Events) {
        let bit = bit(shard);
        if self.heard.load(Ordering::Relaxed) & bit == 0 {
            self.heard.fetch_or(bit, Ordering::SeqCst);
        }
        let is_for_bytes = events == inet::Events::READABLE;
        let was_known = self.known.load(Ordering::Relaxed) != UNKNOWN;
        self.set(match is_for_bytes && was_known {
            true => BYTES,
            false => UNKNOWN,
        });
    }

    /// Wakes whoever waits for what was noted.
    #[inline]
    pub(crate) fn notify(&self, events: inet::Events) {
        self.pollee.notify(events_of(events));
    }

    /// A program has read, and the stack says what is true but for being writable, if wakes tell when that changes.
    #[inline]
    pub fn after_read(&self, to_read: Option<inet::Events>) {
        self.set(match to_read {
            Some(events) if events.is_empty() => NOTHING,
            Some(inet::Events::READABLE) => BYTES,
            _ => UNKNOWN,
        });
    }

    /// A call may change anything.
    #[inline]
    pub fn forget(&self) {
        self.set(UNKNOWN);
        if self.sends.load(Ordering::Relaxed) != ASK {
            self.sends.store(ASK, Ordering::Relaxed);
        }
    }

    /// Whether the member in a shard may have more than room to send.
    #[inline]
    pub fn may_have(&self, shard: u16) -> bool {
        self.heard.load(Ordering::SeqCst) & bit(shard) != 0
    }

    /// Whether no member but that in a shard may.
    #[inline]
    pub fn only_may_have(&self, shard: u16) -> bool {
        self.heard.load(Ordering::SeqCst) & !bit(shard) == 0
    }

    /// The shard of a member is locked, and has this, but for room to send.
    pub fn found(&self, shard: u16, events: inet::Events) {
        if shard < SHARED_BIT && events.is_empty() {
            self.heard.fetch_and(!bit(shard), Ordering::SeqCst);
        }
    }

    /// Whether sends are known to have no address of the socket's own.
    #[inline]
    pub fn has_no_address(&self) -> bool {
        self.sends.load(Ordering::Relaxed) == WITHOUT_ADDRESS
    }

    /// It has none; its shard is locked.
    pub fn note_no_address(&self) {
        self.sends.store(WITHOUT_ADDRESS, Ordering::Relaxed);
    }

    /// Whether sends are known to have no address that leads elsewhere than to loopback.
    #[inline]
    pub fn may_loop(&self) -> bool {
        let sends = self.sends.load(Ordering::Relaxed);
        sends == WITHOUT_ADDRESS || sends == LOOPBACK_ADDRESS
    }

    /// It has one of loopback; its shard is locked.
    pub fn note_loopback_address(&self) {
        self.sends.store(LOOPBACK_ADDRESS, Ordering::Relaxed);
    }

    /// The shard by which the socket sends to its only peer, if that is known for this epoch.
    #[inline]
    pub fn sends_by(&self, epoch: u32) -> Option<u16> {
        let sends = self.sends.load(Ordering::Relaxed);
        let is_current = sends & CONNECTED != 0 && (sends >> EPOCH_SHIFT) as u32 == epoch;
        is_current.then_some(sends as u16)
    }

    /// It was this shard in that epoch; the socket's shard is locked.
    pub fn note_sends_by(&self, epoch: u32, shard: u16) {
        let sends = u64::from(epoch) << EPOCH_SHIFT | CONNECTED | u64::from(shard);
        self.sends.store(sends, Ordering::Relaxed);
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
    /// looks, as does who enters a queue (`waitq`).
    #[inline]
    fn set(&self, known: u8) {
        if self.known.load(Ordering::Relaxed) != known {
            self.known.swap(known, Ordering::SeqCst);
        }
    }
}

/// A shard's bit in `heard`.
#[inline]
const fn bit(shard: u16) -> u64 {
    match shard < SHARED_BIT {
        true => 1 << shard,
        false => 1 << SHARED_BIT,
    }
}
