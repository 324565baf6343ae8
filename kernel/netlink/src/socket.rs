//! One socket: its number, its groups, its queue, and the dump that it reads.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use mach::sync::Spin;
use netlink::{Flags, Message, Messages};
use sync::poll::{Events, Pollee};
use sync::{Error, Mutex, Result};
use task::current;

use super::answer::{Refusal, acknowledge};
use super::dump::Dumping;
use super::options::Wishes;
use super::queue::{Datagram, Queue};
use super::registry::{self, Listed};
use super::serve::{self, Outcome};
use super::{Dialect, Protocol, changes};
use net::{NetStack, current_stack};
use sockets::{CommonOptions, Held, SocketFilter};
use vfs::file::next_number;
use vfs::socket::SocketType;

/// The highest group's number.
pub(super) const GROUPS_MAX: u32 = u64::BITS;

/// Message types below this are netlink's own: nothing to be done.
const CONTROL_MAX: u16 = 16;

/// A netlink socket.
pub struct NetlinkSocket {
    /// What it is about.
    pub(super) stack: Arc<NetStack>,
    pub(super) number: u64,
    pub(super) kind: SocketType,
    pub(super) protocol: Protocol,
    pub(super) dialect: &'static Dialect,
    pub(super) options: CommonOptions,
    pub(super) wishes: Wishes,
    pub(super) filter: SocketFilter,
    pub(super) pollee: Pollee,
    /// Its number among sockets of its protocol; 0 until it has one.
    port: AtomicU32,
    /// Bit `n - 1` for group `n`.
    groups: AtomicU64,
    pub(super) queue: Spin<Queue>,
    pub(super) dump: Mutex<Option<Dumping>>,
    /// The largest buffer that the program has read into.
    pub(super) room_seen: AtomicUsize,
    me: Weak<Self>,
    _held: Held,
}

impl NetlinkSocket {
    pub(super) fn new(
        kind: SocketType,
        protocol: Protocol,
        dialect: &'static Dialect,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            stack: current_stack(),
            number: next_number(),
            kind,
            protocol,
            dialect,
            options: CommonOptions::default(),
            wishes: Wishes::default(),
            filter: SocketFilter::default(),
            pollee: Pollee::new(),
            port: AtomicU32::new(0),
            groups: AtomicU64::new(0),
            queue: Spin::default(),
            dump: Mutex::new(None),
            room_seen: AtomicUsize::new(0),
            me: me.clone(),
            _held: Held::one(),
        })
    }

    /// Its number, if it has one.
    pub(super) fn bound_port(&self) -> Option<u32> {
        Some(self.port()).filter(|port| *port != 0)
    }

    /// Its number; 0 without one.
    pub(super) fn port(&self) -> u32 {
        self.port.load(Ordering::Relaxed)
    }

    pub(super) fn set_port(&self, port: u32) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// Gives it a number if it has none.
    ///
    /// Errors: `Invalid` if it has another one than `wanted`; `AddressInUse`.
    pub(super) fn bind_port(&self, wanted: u32) -> Result<u32> {
        let port = match (self.bound_port(), self.me.upgrade()) {
            (Some(port), _) => port,
            (None, Some(me)) => registry::assign(&me, wanted, current().process.id())?,
            (None, None) => return Err(Error::BadFile),
        };
        match wanted {
            0 => Ok(port),
            wanted if wanted == port => Ok(port),
            _ => Err(Error::Invalid),
        }
    }

    /// Groups that it is in.
    pub(super) fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    pub(super) fn is_member(&self, group: u32) -> bool {
        self.groups() & group_bit(group) != 0
    }

    /// Makes it a member of exactly the groups that `change` says. What changes before it
    /// joined it does not hear of.
    pub(super) fn change_groups(&self, change: impl Fn(u64) -> u64) {
        changes::listen(&self.stack, || {
            let before = self.groups();
            let after = change(before);
            self.groups.store(after, Ordering::Relaxed);
            if (before == 0) != (after == 0) {
                self.stack.count_change_listener(after != 0);
            }
        });
    }

    /// Gives it something to read, as much of it as its filter wants.
    pub(super) fn push(&self, mut datagram: Datagram) {
        if let Some(filter) = self.filter.attached() {
            let wanted = filter.keep_of_message(&[&datagram.bytes]);
            if wanted == 0 {
                return;
            }
            datagram.bytes.truncate(wanted);
        }
        let limit = self.options.receive_buffer.load(Ordering::Relaxed) as usize;
        self.queue.lock().push(datagram, limit);
        self.pollee.notify(Events::READABLE);
    }

    /// Gives it bytes that are no messages: what a C library waits for (mq_notify(3)).
    pub fn deliver(&self, bytes: Vec<u8>) {
        self.push(Datagram { bytes, group: 0 });
    }

    /// Does what the messages of one datagram ask for, in order.
    pub(super) fn obey(&self, datagram: &[u8]) {
        let requests = Messages::new(datagram);
        for message in requests.filter(|message| message.header().flags.any(Flags::REQUEST)) {
            let done = match message.header().kind {
                ..CONTROL_MAX => Ok(Outcome::Done),
                _ => serve::request(self, &message),
            };
            let done = done.and_then(|outcome| self.carry_out(outcome));
            self.acknowledge(&message, done);
        }
    }

    /// Whether there is nothing left but to say so.
    fn carry_out(&self, outcome: Outcome) -> core::result::Result<bool, Refusal> {
        let Outcome::Dump(dumping) = outcome else {
            return Ok(true);
        };
        let mut place = self.dump.lock();
        if place.is_some() {
            return Err(Error::Busy.into());
        }
        *place = Some(dumping);
        drop(place);
        self.pollee.notify(Events::READABLE);
        // The dump's end is its acknowledgement.
        Ok(false)
    }

    fn acknowledge(&self, message: &Message<'_>, done: core::result::Result<bool, Refusal>) {
        let refusal = match done {
            Ok(is_done) if !is_done || !message.header().flags.any(Flags::ACK) => return,
            done => done.err(),
        };
        acknowledge(self, message, refusal);
    }

    /// As /proc/net/netlink lists it.
    pub(super) fn listed(&self) -> Listed {
        let queue = self.queue.lock();
        Listed {
            protocol: self.protocol,
            port: self.port(),
            groups: self.groups(),
            queued_bytes: queue.bytes(),
            has_dump: self.dump.try_lock().is_none_or(|dump| dump.is_some()),
            dropped: queue.dropped(),
            inode: self.number,
        }
    }
}

/// The bit of a group; none for 0 and for those that we do not have.
pub(super) fn group_bit(group: u32) -> u64 {
    group
        .checked_sub(1)
        .and_then(|shift| 1_u64.checked_shl(shift))
        .unwrap_or(0)
}

impl Drop for NetlinkSocket {
    fn drop(&mut self) {
        if *self.groups.get_mut() != 0 {
            self.stack.count_change_listener(false);
        }
        if let Some(port) = self.bound_port() {
            registry::release(&self.stack, self.protocol, port);
        }
    }
}
