//! One round of a row: which system on which machine, and for how long.

use bench_pair::{Better, Guest, System, Table};
use qemu::Accel;

/// Of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Virtual CPUs.
    pub cpus: u8,
    /// Whether they are several times slower than they could be, so that the host has room for
    /// them and for the client ([`Accel::TcgSlow`]).
    pub is_slow: bool,
}

impl Size {
    pub const ONE: Self = Self::new(1, false);
    pub const TWO: Self = Self::new(2, false);
    pub const ONE_SLOW: Self = Self::new(1, true);
    pub const TWO_SLOW: Self = Self::new(2, true);

    const fn new(cpus: u8, is_slow: bool) -> Self {
        Self { cpus, is_slow }
    }
}

/// A round that measures for a sixth of the time shows only that a row works.
const QUICK_DIVISOR: u32 = 6;

/// One round of a row.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What runs in the guest.
    pub system: System,
    /// The machine.
    pub size: Size,
    /// Whether to measure as short as possible.
    pub quick: bool,
}

impl Run {
    /// Boots a program with 512 MiB; `args` are flags, program and arguments of `sietch run`.
    pub fn boot(&self, args: &[&str]) -> Result<Guest, String> {
        let cpus = self.size.cpus.to_string();
        let args = [&["-m", "512M", "--cpus", &cpus], args].concat();
        self.system.boot_on(&args, |machine| {
            if self.size.is_slow {
                machine.accel = Accel::TcgSlow;
            }
        })
    }

    /// How many requests to send where `full` are a full measurement.
    pub fn requests(&self, full: u32) -> u32 {
        match self.quick || self.size.is_slow {
            true => full.div_ceil(QUICK_DIVISOR),
            false => full,
        }
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
