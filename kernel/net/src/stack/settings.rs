//! What an administrator may change while the network runs.
//!
//! It is the configuration of a stack's shards ([`inet::Config`]); where several have a CPU
//! each, each has its part of the limits. `sysctl` gives the fields their names. What no
//! shard knows (limits on what programs ask for in any family) is in
//! [`sockets::limits`].
//!
//! Lock order: `settings`, then one shard. It is held while the shards hear of a change, so
//! that all of them hear of all changes in the same order.

use alloc::vec::Vec;

use base::Instant;
use inet::PortRange;

use super::NetStack;
use crate::device::{alarm, runners};

impl NetStack {
    /// The configuration in force.
    pub fn settings(&self) -> inet::Config {
        *self.settings.lock()
    }

    /// Changes it.
    pub fn change_settings(&self, change: impl FnOnce(&mut inet::Config)) {
        let mut settings = self.settings.lock();
        change(&mut settings);
        let part = settings.part(self.count());
        for number in 0..self.shard_count() {
            self.with_shard(number, |stack, link| {
                stack.reconfigure(part);
                // What was due may be due earlier now.
                if !link.is_polled {
                    alarm::arm(link, stack.next_deadline().unwrap_or(Instant::NEVER));
                }
            });
        }
        (0..self.count()).for_each(runners::call);
    }

    /// Ports that are left out where one is chosen for a socket.
    pub fn reserved_ports(&self) -> Vec<PortRange> {
        self.with_first_shard(|stack| stack.reserved_ports().to_vec())
            .unwrap_or_default()
    }

    /// Changes them.
    pub fn reserve_ports(&self, ranges: &[PortRange]) {
        for number in 0..self.shard_count() {
            self.with_shard(number, |stack, _| stack.reserve_ports(ranges.to_vec()));
        }
    }

    /// Whether the first interface besides loopback speaks IPv6.
    pub fn has_ipv6(&self) -> bool {
        self.with_first_shard(inet::Stack::has_ipv6)
            .unwrap_or(false)
    }
}
