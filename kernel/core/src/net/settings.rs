//! What an administrator may change while the network runs.
//!
//! It is the configuration of the machine's stack ([`inet::Config`]); where there are
//! several, each has its part of the limits. `sysctl` gives the fields their names. What no
//! stack knows (limits on what programs ask for in any family) is in
//! [`crate::socket::limits`].
//!
//! Lock order: `SETTINGS`, then one shard. It is held while the shards hear of a change, so
//! that all of them hear of all changes in the same order.

use alloc::vec::Vec;

use inet::PortRange;
use mach::cpu::CpuId;
use mach::sync::Spin;

use super::shard::{self, with_shard};
use crate::sched::{Softirq, raise_on};

/// The machine's; the default before boot has got that far.
static SETTINGS: Spin<Option<inet::Config>> = Spin::new(None);

/// Sets what is in force from boot on, before there is a stack.
pub(super) fn init(config: inet::Config) {
    *SETTINGS.lock() = Some(config);
}

/// The configuration in force.
pub fn settings() -> inet::Config {
    SETTINGS.lock().unwrap_or_default()
}

/// Changes it.
pub fn change_settings(change: impl FnOnce(&mut inet::Config)) {
    let mut settings = SETTINGS.lock();
    let mut config = settings.unwrap_or_default();
    change(&mut config);
    *settings = Some(config);
    let part = config.part(shard::count());
    for number in 0..shard::count() {
        with_shard(number, |stack, _| stack.reconfigure(part));
        // What was due may be due earlier now.
        raise_on(CpuId(number.into()), Softirq::Net);
    }
}

/// Ports that are left out where one is chosen for a socket.
pub fn reserved_ports() -> Vec<PortRange> {
    with_shard(0, |stack, _| stack.reserved_ports().to_vec()).unwrap_or_default()
}

/// Changes them.
pub fn reserve_ports(ranges: &[PortRange]) {
    for number in 0..shard::count() {
        with_shard(number, |stack, _| stack.reserve_ports(ranges.to_vec()));
    }
}

/// Whether the card speaks IPv6.
pub fn has_ipv6() -> bool {
    with_shard(0, |stack, _| stack.has_ipv6()).unwrap_or(false)
}
