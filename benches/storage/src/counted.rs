//! Instructions for a transfer, an append, a transaction or a SET, and the functions that they are of.
//!
//! A command runs with few of them and with many; the difference is theirs: a program's start and
//! end, and what is typed into the shell, are in both. Each difference is taken several times, and the median
//! counts: a sample during which the host was busy has more of the guest's clock ticks.

use std::collections::HashMap;
use std::path::Path;

use bench_pair::System;
use bench_pair::counter::{self, Counts};
use bench_pair::names::Names;

use crate::disk::{Bus, Cache, Disk};
use crate::failures::Failures;
use crate::load::{self, DIRECT};
use crate::shell::Shell;
use crate::{redis, sqlite};

/// Where the kernel's half of the addresses begins, in both systems.
const KERNEL: u64 = 1 << 63;

/// How many of a thing are counted.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Transfers of the short run.
    short: u32,
    /// How many more the long one has.
    ///
    /// fio looks for some 60 ms of the clock how fast the CPU is, and what it executes meanwhile differs from
    /// run to run: spread over so many it is little.
    more: u32,
    /// How often.
    samples: usize,
}

impl Length {
    /// For the page.
    pub const WHOLE: Self = Self {
        short: 200,
        more: 1600,
        samples: 3,
    };
    /// To see whether anything has changed much.
    pub const QUICK: Self = Self {
        short: 200,
        more: 1600,
        samples: 1,
    };

    /// Of what takes a while, such as appends.
    fn eighth(self) -> Self {
        Self {
            short: self.short / 8,
            more: self.more / 8,
            ..self
        }
    }
}

/// What one of a thing costs.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Which.
    pub name: String,
    /// Instructions of the kernel.
    pub kernel: f64,
    /// Of the program.
    pub program: f64,
    /// By the kernel's function.
    pub functions: HashMap<String, f64>,
}

impl Cost {
    /// The difference of two runs, of which the long one does so many more.
    pub fn new(name: String, short: &Counts, long: &Counts, more: u32, names: &Names) -> Self {
        let mut cost = Self {
            name,
            kernel: 0.0,
            program: 0.0,
            functions: HashMap::new(),
        };
        let short: HashMap<u64, u64> = short.iter().collect();
        for (address, count) in long.iter() {
            let before = short.get(&address).copied().unwrap_or(0);
            let each = (count as f64 - before as f64) / f64::from(more);
            if address < KERNEL {
                cost.program += each;
                continue;
            }
            cost.kernel += each;
            if each != 0.0 {
                *cost.functions.entry(owner(&names.at(address))).or_default() += each;
            }
        }
        cost
    }
}

/// The innermost function that is not of the language's own libraries: that is where they are used.
fn owner(functions: &[String]) -> String {
    let is_own = |name: &&String| {
        let name = name.trim_start_matches('<');
        !["core::", "alloc::"]
            .iter()
            .any(|library| name.starts_with(library))
    };
    let name = functions.iter().find(is_own).or(functions.last());
    name.cloned().unwrap_or_default()
}

/// The guest whose instructions are counted.
struct Counter {
    system: System,
    shell: Shell,
    names: Names,
    costs: Vec<Cost>,
}

/// Counts all that `is_wanted` names for one system, on disks behind `bus`.
pub fn count(
    system: System,
    bus: Bus,
    length: Length,
    is_wanted: &dyn Fn(&str) -> bool,
    failures: &mut Failures,
) -> Result<Vec<Cost>, String> {
    let (raw, ext4) = (
        Disk::new(Cache::Unsafe, None)?,
        Disk::new(Cache::Unsafe, Some(Path::new(crate::EMPTY)))?,
    );
    let disks = [raw.flag(bus), ext4.flag(bus)];
    let mut programs: Vec<String> = [load::PROGRAM, sqlite::PROGRAM]
        .iter()
        .map(|program| format!("{program}:{program}"))
        .collect();
    programs.extend(redis::additions()?);
    let (shell, names) = Shell::counted(system, &disks, &programs)?;
    let mut counter = Counter {
        system,
        shell,
        names,
        costs: Vec::new(),
    };
    counter.shell.mount(system, bus)?;
    for load in DIRECT.iter().filter(|load| is_wanted(&load.name())) {
        let run = |shell: &mut Shell, transfers| {
            let command = load.command(shell.raw_disk(), transfers);
            shell.run(&command)
        };
        counter.row(load.name(), length, failures, &run);
    }
    let few = length.eighth();
    if is_wanted(APPENDS) {
        let run = |shell: &mut Shell, count| shell.run(&load::appends(count));
        counter.row(APPENDS.into(), few, failures, &run);
    }
    for mode in sqlite::Mode::ALL {
        let name = format!("{}, a transaction", mode.name());
        if is_wanted(&name) {
            mode.prepare(&mut counter.shell, &[few.short, few.short + few.more])?;
            let run = |shell: &mut Shell, count| mode.run(shell, count);
            counter.row(name, few, failures, &run);
        }
    }
    for way in redis::Way::ALL {
        for clients in redis::CLIENTS {
            let name = format!("{}, a SET", way.name(clients));
            if is_wanted(&name) {
                way.start(&mut counter.shell)?;
                let run = |_: &mut Shell, count| redis::set(way, clients, count);
                counter.row(name, few, failures, &run);
            }
        }
    }
    Ok(counter.costs)
}

/// The row of ext4.
const APPENDS: &str = "append of 4 KiB to a file of ext4, and `fsync`";

/// Does so many of a thing.
type Run<'a, T> = &'a dyn Fn(&mut Shell, u32) -> Result<T, String>;

impl Counter {
    /// A row that fails is said, and missing.
    fn row<T>(&mut self, name: String, length: Length, failures: &mut Failures, run: Run<'_, T>) {
        match self.median(&name, length, run) {
            Ok(cost) => {
                eprintln!("  {name}: {:.0} + {:.0}", cost.kernel, cost.program);
                self.costs.push(cost);
            }
            Err(why) => failures.add(self.system, &name, &why),
        }
    }

    fn median<T>(&mut self, name: &str, length: Length, run: Run<'_, T>) -> Result<Cost, String> {
        // Once for caches, and for the code that is translated.
        run(&mut self.shell, length.short)?;
        let mut costs = Vec::new();
        for _ in 0..length.samples {
            let short = self.counted(length.short, run)?;
            let long = self.counted(length.short + length.more, run)?;
            let name = name.to_string();
            costs.push(Cost::new(name, &short, &long, length.more, &self.names));
        }
        costs.sort_by(|one, other| one.kernel.total_cmp(&other.kernel));
        Ok(costs.swap_remove(costs.len() / 2))
    }

    fn counted<T>(&mut self, count: u32, run: Run<'_, T>) -> Result<Counts, String> {
        let before = counter::read()?;
        run(&mut self.shell, count)?;
        Ok(counter::read()?.since(&before))
    }
}

/// The kernel's functions that cost most, as text.
pub fn functions(system: System, costs: &[Cost]) -> String {
    let mut text = String::new();
    for cost in costs {
        text += &format!("{}, {}: {:.0}\n", system.name(), cost.name, cost.kernel);
        let mut functions: Vec<_> = cost.functions.iter().collect();
        functions.sort_by(|one, other| other.1.total_cmp(one.1));
        for (name, count) in functions.iter().filter(|(_, count)| **count >= 3.0) {
            text += &format!("  {count:7.1} {name}\n");
        }
    }
    text
}
