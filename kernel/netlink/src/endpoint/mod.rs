//! A socket as requests and changes know it: whom they answer, and what waits there for it.
//!
//! Requests are done below the socket that took them in. They need to know how it wants to be
//! answered and where the answer goes, not what a file or a dump under way is.

pub(crate) mod flags;
pub(crate) mod queue;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mach::sync::Spin;
use sync::Error;
use sync::poll::{Events, Pollee};

use crate::protocol::{Abi, Protocol};
use flags::Flags;
use net::{NetStack, current_stack};
use queue::{Datagram, Queue};
use sockets::{CommonOptions, SocketFilter};
use vfs::socket::OptionName;

/// The highest group's number.
pub(crate) const GROUPS_MAX: u32 = u64::BITS;

/// See the module.
pub(crate) struct Endpoint {
    /// What it is about.
    pub stack: Arc<NetStack>,
    pub protocol: Protocol,
    pub dialect: &'static Abi,
    pub options: CommonOptions,
    pub flags: Flags,
    pub filter: SocketFilter,
    pub pollee: Pollee,
    pub queue: Spin<Queue>,
    /// Its number among sockets of its protocol; 0 until it has one.
    port: AtomicU32,
    /// Bit `n - 1` for group `n`.
    groups: AtomicU64,
}

impl Endpoint {
    pub fn new(protocol: Protocol, dialect: &'static Abi) -> Self {
        Self {
            stack: current_stack(),
            protocol,
            dialect,
            options: CommonOptions::default(),
            flags: Flags::default(),
            filter: SocketFilter::default(),
            pollee: Pollee::new(),
            queue: Spin::default(),
            port: AtomicU32::new(0),
            groups: AtomicU64::new(0),
        }
    }

    /// Its number, if it has one.
    pub fn bound_port(&self) -> Option<u32> {
        Some(self.port()).filter(|port| *port != 0)
    }

    /// Its number; 0 without one.
    pub fn port(&self) -> u32 {
        self.port.load(Ordering::Relaxed)
    }

    pub fn set_port(&self, port: u32) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// Groups that it is in.
    pub fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    pub fn set_groups(&self, groups: u64) {
        self.groups.store(groups, Ordering::Relaxed);
    }

    pub fn is_member(&self, group: u32) -> bool {
        self.groups() & group_bit(group) != 0
    }

    /// Gives it something to read, as much of it as its filter wants.
    pub fn push(&self, mut datagram: Datagram) {
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

    /// The same with bytes that are for no group.
    pub fn deliver(&self, bytes: Vec<u8>) {
        self.push(Datagram { bytes, group: 0 });
    }

    /// An answer was lost: there was no memory for it.
    pub fn lose(&self) {
        self.queue.lock().lose();
        self.pollee.notify(Events::ERR);
    }

    /// That something was lost, for a program that wants to hear of it.
    pub fn take_overrun(&self) -> Option<Error> {
        let has_overrun = self.queue.lock().take_overrun();
        let is_wanted = !self.flags.has(OptionName::NetlinkNoOverruns);
        (has_overrun && is_wanted).then_some(Error::NoBuffers)
    }
}

/// The bit of a group; none for 0 and for those that we do not have.
pub(crate) fn group_bit(group: u32) -> u64 {
    group
        .checked_sub(1)
        .and_then(|shift| 1_u64.checked_shl(shift))
        .unwrap_or(0)
}
