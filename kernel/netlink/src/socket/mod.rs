//! One socket: its end of the talk, and the dump that it reads.

mod file;
mod options;
mod reading;
pub(crate) mod registry;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::AtomicUsize;

use netlink::{Flags, Messages};
use sync::poll::Events;
use sync::{Error, Mutex, Result};
use task::current;

use crate::answer::Refusal;
use crate::changes;
use crate::dump::Dumping;
use crate::endpoint::Endpoint;
use crate::protocol::{Abi, Protocol};
use crate::requester::Requester;
use crate::serve::{self, Outcome};
use registry::Listed;
use sockets::Held;
use vfs::file::next_number;
use vfs::socket::SocketType;

/// Message types below this are netlink's own: nothing to be done.
const CONTROL_MAX: u16 = 16;

/// A netlink socket.
pub struct NetlinkSocket {
    number: u64,
    kind: SocketType,
    endpoint: Endpoint,
    dump: Mutex<Option<Dumping>>,
    /// The largest buffer that the program has read into.
    room_seen: AtomicUsize,
    me: Weak<Self>,
    _held: Held,
}

impl NetlinkSocket {
    pub(crate) fn new(kind: SocketType, protocol: Protocol, dialect: &'static Abi) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            number: next_number(),
            kind,
            endpoint: Endpoint::new(protocol, dialect),
            dump: Mutex::new(None),
            room_seen: AtomicUsize::new(0),
            me: me.clone(),
            _held: Held::one(),
        })
    }

    /// Gives it a number if it has none.
    ///
    /// Errors: `Invalid` if it has another one than `wanted`; `AddressInUse`.
    fn bind_port(&self, wanted: u32) -> Result<u32> {
        let port = match (self.endpoint.bound_port(), self.me.upgrade()) {
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

    /// Makes it a member of exactly the groups that `change` says. What changes before it
    /// joined it does not hear of.
    fn change_groups(&self, change: impl Fn(u64) -> u64) {
        changes::listen(&self.endpoint.stack, || {
            let before = self.endpoint.groups();
            let after = change(before);
            self.endpoint.set_groups(after);
            if (before == 0) != (after == 0) {
                self.endpoint.stack.count_change_listener(after != 0);
            }
        });
    }

    /// Gives it bytes that are no messages: what a C library waits for (mq_notify(3)).
    pub fn deliver(&self, bytes: Vec<u8>) {
        self.endpoint.deliver(bytes);
    }

    /// Does what the messages of one datagram ask for, in order.
    fn obey(&self, datagram: &[u8]) {
        let requests = Messages::new(datagram);
        for message in requests.filter(|message| message.header().flags.any(Flags::REQUEST)) {
            let requester = Requester {
                endpoint: &self.endpoint,
                header: message.header(),
            };
            let done = match requester.header.kind {
                ..CONTROL_MAX => Ok(Outcome::Done),
                _ => serve::request(&requester, &message),
            };
            match done.and_then(|outcome| self.carry_out(outcome)) {
                Ok(is_done) if !is_done || !requester.has(Flags::ACK) => {}
                done => requester.acknowledge(&message, done.err()),
            }
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
        self.endpoint.pollee.notify(Events::READABLE);
        // The dump's end is its acknowledgement.
        Ok(false)
    }

    /// As /proc/net/netlink lists it.
    fn listed(&self) -> Listed {
        let queue = self.endpoint.queue.lock();
        Listed {
            protocol: self.endpoint.protocol,
            port: self.endpoint.port(),
            groups: self.endpoint.groups(),
            queued_bytes: queue.bytes(),
            has_dump: self.dump.try_lock().is_none_or(|dump| dump.is_some()),
            dropped: queue.dropped(),
            inode: self.number,
        }
    }
}

impl Drop for NetlinkSocket {
    fn drop(&mut self) {
        if self.endpoint.groups() != 0 {
            self.endpoint.stack.count_change_listener(false);
        }
        if let Some(port) = self.endpoint.bound_port() {
            registry::release(&self.endpoint.stack, self.endpoint.protocol, port);
        }
    }
}
