//! Which shard serves what stays within loopback.
//!
//! # Problem
//! Packets between 127.0.0.0/8 and itself, or ::1 and itself, need no card and no ring. Served by the
//! one shard of a card with one ring, all programs of the machine that talk to each other
//! wait for its lock.
//!
//! # Idea
//! Where CPUs can meet, the first stack has [`SHARDS_MIN`] shards from the start, or one for each CPU if
//! those are more: the two ends of a connection mostly run on two CPUs, and a server with one thread
//! is at all its connections in turn, so connections that share a shard wait for each other
//! however many CPUs there are. The card's rings get the first of them;
//! those beyond have no port and no address but loopback's, as the shard of a new namespace. A stream
//! within loopback may live in any of them, for its packets never leave the shard that sends them:
//! - *Streams* live where both their ports lead (`steer::owner_of_connection`). Who connects
//!   chooses the shard and gets a port that leads there, so no two have the same name. A socket is
//!   opened where the fewest streams are, be it by one thread for many others; among equals in a
//!   shard of the calling CPU. Listeners have a member in each.
//! - *Datagrams* arrive where the receiver's port leads, so they keep their order whoever
//!   sends. The receiver has a member there, and a sender gets one with its first datagram to
//!   there, for ICMP errors. Who wants any port gets one that leads to the calling CPU's shard.
//! - *Everything else* stays in the first shard, in which each named datagram socket hears as well:
//!   packets with one end at an address of the card, ICMP, fragments, groups.
//!
//! Names are the first shard's; limits count in all shards together (`inet::Totals`).
//!
//! # Not here
//! Other stacks. Each shard takes some ten KiB, and a listener has a member in each; a
//! namespace is made for little, and often for one program. They have one shard for loopback.

use core::net::IpAddr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use inet::Endpoint;
use mbuf::Chain;

use super::NetStack;
use super::locked::Slot;
use crate::device::steer;

/// Shards where CPUs can meet, however few these are, rounded up to as many for each.
const SHARDS_MIN: u16 = 16;

impl NetStack {
    /// Makes a shard for each CPU, at least one; once at boot, in the first stack.
    pub(crate) fn add_first_shards(&self, cpus: u16) {
        let shards = match cpus {
            0 | 1 => 1,
            cpus => cpus * SHARDS_MIN.div_ceil(cpus),
        };
        self.loopback_shards.store(shards, Release);
        // The boot has memory for them.
        while self.shard_count() < self.loopback_count() && self.add_shard().is_ok() {}
        self.loopback_shards
            .store(self.shard_count().max(1), Release);
        steer::init_loopback(self.loopback_count());
    }

    /// Shards that serve loopback, those of the card among them. Further interfaces' follow.
    #[inline]
    pub fn loopback_count(&self) -> u16 {
        self.loopback_shards.load(Acquire)
    }

    /// The calling CPU's shard for loopback.
    #[inline]
    pub fn own_for_loopback(&self) -> u16 {
        match self.loopback_count() {
            1 => 0,
            count => mach::cpu::id().0 as u16 % count,
        }
    }

    /// Whether this stack spreads what goes from `from`, if that is known, to `to` over
    /// shards for loopback.
    #[inline]
    pub fn is_within_loopback(&self, from: Option<IpAddr>, to: IpAddr) -> bool {
        let is_ours = |from: IpAddr| from.is_loopback() || from.is_unspecified();
        self.loopback_count() > 1 && to.is_loopback() && from.is_none_or(is_ours)
    }

    /// The shard in which datagrams to `to` arrive, if they stay within loopback.
    #[inline]
    pub fn loopback_exit(&self, from: Option<IpAddr>, to: Endpoint) -> Option<u16> {
        let is_within = self.is_within_loopback(from, to.addr);
        is_within.then(|| steer::owner_of_port(to.port))
    }

    /// The same of what a program made itself from the transport header on.
    pub fn loopback_exit_of(
        &self,
        (from, to): (Option<IpAddr>, IpAddr),
        protocol: u8,
        payload: &Chain,
    ) -> Option<u16> {
        let mut ports = [0; 4];
        let has_ports = payload.copy_to_slice(0, &mut ports) == ports.len();
        if !has_ports || !self.is_within_loopback(from, to) {
            return None;
        }
        let [a, b, c, d] = ports;
        let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        steer::owner_within_loopback(protocol, ports)
    }

    /// Whether all that leaves this host, or goes to the address of its card, does so by one
    /// shard, the first.
    #[inline]
    pub fn has_one_exit(&self) -> bool {
        self.count() == 1 && !self.has_further()
    }

    /// The shard of a TCP connection, unless it is a further interface's.
    pub fn owner_of_connection(&self, local: Endpoint, remote: Endpoint) -> u16 {
        match self.loopback_count() {
            1 => 0,
            _ => steer::owner_of_connection(local, remote),
        }
    }

    /// The shard in which a stream without a name is opened: of those with the fewest streams one
    /// of the calling CPU's, if there is such a one.
    pub fn shard_to_open(&self) -> u16 {
        let (own, count) = (self.own_for_loopback(), self.loopback_count());
        let all = nearest_first(own, count, mach::cpu::count() as u16);
        all.min_by_key(|shard| self.streams_of(*shard))
            .unwrap_or(own)
    }

    fn slot(&self, shard: u16) -> Option<&Slot> {
        Some(self.shards.get(usize::from(shard))?.get()?)
    }

    fn streams_of(&self, shard: u16) -> u32 {
        let slot = self.slot(shard);
        slot.map_or(0, |slot| slot.streams.load(Relaxed))
    }

    /// A program has a stream more in a shard.
    #[inline]
    pub fn count_stream(&self, shard: u16) {
        if let Some(slot) = self.slot(shard) {
            slot.streams.fetch_add(1, Relaxed);
        }
    }

    /// Or one less.
    #[inline]
    pub fn uncount_stream(&self, shard: u16) {
        if let Some(slot) = self.slot(shard) {
            slot.streams.fetch_sub(1, Relaxed);
        }
    }
}

/// All of `count` shards in the order in which the CPU with the shard `own` chooses among equals.
fn nearest_first(own: u16, count: u16, cpus: u16) -> impl Iterator<Item = u16> {
    let each = (count / cpus.max(1)).max(1);
    (0..count).map(move |step| (own + step % each * cpus + step / each) % count)
}
