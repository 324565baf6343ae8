//! The rows by their names.

use bench_pair::Table;

use crate::run::{Run, Size};
use crate::{connections, counted, flood, idle, iperf, memcached, nginx, ping, redis, round_trip};

/// What is measured together. It may fill several lines of the table.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// On which machines.
    pub machines: &'static [Size],
    /// Boots a system, measures and adds a round's figures to the table.
    pub measure: fn(&Run, &mut Table) -> Result<(), String>,
    /// Whether the host has no part in the figures, so that one round says all.
    is_exact: bool,
}

impl Row {
    const fn new(
        name: &'static str,
        machines: &'static [Size],
        measure: fn(&Run, &mut Table) -> Result<(), String>,
    ) -> Self {
        Self {
            name,
            machines,
            measure,
            is_exact: false,
        }
    }

    const fn once(self) -> Self {
        Self {
            is_exact: true,
            ..self
        }
    }

    /// Whether it is measured in a round; the first is 1.
    pub fn is_due(&self, round: u32) -> bool {
        round == 1 || !self.is_exact
    }
}

/// What a second virtual CPU gains, on this host and on one with room for it.
const GROWING: &[Size] = &[Size::ONE, Size::TWO, Size::ONE_SLOW, Size::TWO_SLOW];
const FIXED: &[Size] = &[Size::ONE];

/// All rows in the order of the page.
pub const ROWS: [Row; 12] = [
    Row::new("redis", GROWING, redis::measure),
    Row::new("memcached", GROWING, memcached::measure),
    Row::new("nginx", GROWING, nginx::measure),
    Row::new("iperf3", FIXED, iperf::measure),
    Row::new("udp", FIXED, round_trip::measure),
    Row::new("connections", FIXED, connections::measure),
    Row::new("counted", FIXED, counted::measure).once(),
    Row::new("ping", FIXED, ping::virtio),
    Row::new("ping-e1000", FIXED, ping::e1000),
    Row::new("ping-igb", FIXED, ping::igb),
    Row::new("idle", FIXED, idle::measure),
    Row::new("flood", FIXED, flood::measure),
];
