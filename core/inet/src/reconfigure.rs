//! Another configuration for a stack that runs.
//!
//! Most of it is looked up at each use. Here is what was made from the old one: ranges of ports,
//! the table of finished connections, rates.

use alloc::vec::Vec;

use crate::budget::Budget;
use crate::config::Config;
use crate::counters::Count;
use crate::ephemeral::PortRange;
use crate::stack::Stack;

impl Stack {
    /// The limits and habits in force.
    pub fn config(&self) -> &Config {
        &self.net.config
    }

    /// Changes them. If fewer finished connections are remembered from now on, the oldest go.
    /// Deadlines may have changed: ask [`next_deadline`](Self::next_deadline) again.
    pub fn reconfigure(&mut self, config: Config) {
        let net = &mut self.net;
        let old = core::mem::replace(&mut net.config, config);
        net.config.sockets_max = old.sockets_max;
        net.demux.set_range(config.ports);
        net.tcp_memory.set_limits(config.tcp_memory);
        net.udp_memory.set_limits(config.udp_memory);
        let gone = net
            .time_wait
            .reconfigure(config.time_waits_max, &config.time_wait);
        net.stats.counts.add(Count::TimeWaitsEvicted, gone);
        if config.challenges_per_second != old.challenges_per_second {
            net.challenges = Budget::new(config.challenges_per_second);
        }
        if config.icmp_errors_per_second != old.icmp_errors_per_second {
            net.icmp_errors = Budget::new(config.icmp_errors_per_second);
        }
    }

    /// Ports that are never chosen for a socket, although they lie in the range; a program
    /// may still ask for one. Rising and apart.
    pub fn reserved_ports(&self) -> &[PortRange] {
        self.net.demux.reserved()
    }

    /// Changes them; in any order, and they may overlap.
    pub fn reserve_ports(&mut self, ranges: Vec<PortRange>) {
        self.net.demux.reserve(&PortRange::united(ranges));
    }
}
