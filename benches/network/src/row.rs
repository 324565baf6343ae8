//! The rows by their names, and one round of one.

use bench_pair::{Better, Guest, System, Table};

use crate::{connections, flood, idle, iperf, memcached, nginx, ping, redis, round_trip};

/// What is measured together. It may fill several lines of the table.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// With how many virtual CPUs.
    pub cpus: &'static [u8],
    /// Boots a system, measures and adds a round's figures to the table.
    pub measure: fn(&Run, &mut Table) -> Result<(), String>,
}

impl Row {
    const fn new(
        name: &'static str,
        cpus: &'static [u8],
        measure: fn(&Run, &mut Table) -> Result<(), String>,
    ) -> Self {
        Self {
            name,
            cpus,
            measure,
        }
    }
}

/// All rows in the order of the page.
pub const ROWS: [Row; 11] = [
    Row::new("redis", &[1, 2], redis::measure),
    Row::new("memcached", &[1, 2], memcached::measure),
    Row::new("nginx", &[1, 2], nginx::measure),
    Row::new("iperf3", &[1], iperf::measure),
    Row::new("udp", &[1], round_trip::measure),
    Row::new("connections", &[1], connections::measure),
    Row::new("ping", &[1], ping::virtio),
    Row::new("ping-e1000", &[1], ping::e1000),
    Row::new("ping-igb", &[1], ping::igb),
    Row::new("idle", &[1], idle::measure),
    Row::new("flood", &[1], flood::measure),
];

/// A round that measures for a sixth of the time shows only that a row works.
const QUICK_DIVISOR: u32 = 6;

/// One round of a row.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What runs in the guest.
    pub system: System,
    /// Virtual CPUs.
    pub cpus: u8,
    /// Whether to measure as short as possible.
    pub quick: bool,
}

impl Run {
    /// Boots a program with 512 MiB; `args` are flags, program and arguments of `sietch run`.
    pub fn boot(&self, args: &[&str]) -> Result<Guest, String> {
        let cpus = self.cpus.to_string();
        self.system
            .boot(&[&["-m", "512M", "--cpus", &cpus], args].concat())
    }

    /// How much of a full measurement this round takes.
    pub fn amount(&self, full: u32) -> u32 {
        match self.quick {
            true => full.div_ceil(QUICK_DIVISOR),
            false => full,
        }
    }

    /// Adds a server's rate and what one request costs.
    pub fn add_rate(&self, table: &mut Table, what: &str, rate: f64, cpu_us: f64) {
        let name = format!("{what}, k/s");
        table.add(&name, Better::More, self.system, rate / 1000.0);
        let name = format!("{what}: QEMU's CPU time per request, µs");
        table.add(&name, Better::Less, self.system, cpu_us);
    }
}
