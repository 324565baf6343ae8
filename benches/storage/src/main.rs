//! Counts the guest's instructions for what it does with a disk, and measures rates, beside Debian's Linux.
//!
//!     cargo run --release -p bench-storage -- [--owned] [--durable] [--quick] [--functions] [--sietch] [--bus BUS] [WORD]...
//!
//! The tables go to standard output; a run of all rows in full length writes `docs/bench-storage.md`.
//! `WORD`s choose rows by words of their names; `--functions` lists the kernel's functions
//! behind each row that is counted; `--sietch` leaves Linux out.

#![forbid(unsafe_code)]

mod counted;
mod disk;
mod durable;
mod durable_page;
mod failures;
mod load;
mod owned;
mod page;
mod postgres;
mod rates;
mod redis;
mod shell;
mod sqlite;
mod stages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench_pair::{Kernel, System, Table};
use clap::Parser;
use counted::{Cost, Length};
use disk::{Bus, Cache};
use failures::Failures;
use rates::{Effort, Place};

/// A folder with nothing in it.
const EMPTY: &str = "build/bench/empty";

/// Counts the guest's instructions for what it does with a disk, and measures rates, beside Debian's Linux.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of what is measured by the clock
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Measure less, with the host's cache `unsafe` only, and write no page
    #[arg(long)]
    quick: bool,
    /// Count only, list the kernel's functions that cost most, and write no page
    #[arg(long)]
    functions: bool,
    /// Measure Sietch only, and write no page
    #[arg(long)]
    sietch: bool,
    /// Count transfers of a program on an area's ring and on an NVMe function of its own, and nothing else
    #[arg(long)]
    owned: bool,
    /// Measure what a durable SET costs, by stages and with each kind of log, and nothing else
    #[arg(long)]
    durable: bool,
    /// Measure disks behind this bus only, and write no page
    #[arg(long, value_parser = ["virtio", "nvme"])]
    bus: Option<String>,
    /// Words of the rows' names [default: all rows]
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

impl Flags {
    fn wants(&self, name: &str) -> bool {
        self.words.iter().all(|word| name.contains(word.as_str()))
    }

    fn is_whole(&self) -> bool {
        let is_part = self.quick || self.functions || self.sietch || self.bus.is_some();
        !is_part && self.words.is_empty()
    }

    fn buses(&self) -> impl Iterator<Item = Bus> {
        let is_wanted = |bus: &Bus| match self.bus.as_deref() {
            Some("virtio") => *bus == Bus::Virtio,
            Some(_) => *bus == Bus::Nvme,
            None => true,
        };
        Bus::ALL.into_iter().filter(is_wanted)
    }

    fn caches(&self) -> &'static [Cache] {
        match self.quick {
            true => &[Cache::Unsafe],
            false => &Cache::ALL,
        }
    }

    /// In the order of a round.
    fn systems(&self) -> &'static [System] {
        match (self.sietch, self.quick) {
            (true, _) => &[System::Sietch],
            (_, true) => &[System::Unmitigated, System::Sietch],
            _ => &System::ALL,
        }
    }
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match measure(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-storage: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn measure(flags: &Flags) -> Result<(), String> {
    bench_pair::set_up(&[Kernel::Disk])?;
    if flags.owned {
        let costs = owned::measure(flags.buses())?;
        println!("{}", owned::table(&costs));
        if flags.functions {
            println!("{}", owned::functions(&costs));
        }
        return Ok(());
    }
    fs::create_dir_all(EMPTY).map_err(|error| format!("{EMPTY}: {error}"))?;
    if flags.durable {
        return measure_durable(flags);
    }
    let mut failures = Failures::default();
    let mut counts = String::new();
    for bus in flags.buses() {
        let systems = count(flags, bus, &mut failures);
        let table = page::counts(bus, &systems);
        println!("{table}");
        counts += &table;
    }
    if flags.functions {
        return Ok(());
    }
    let files = Files(postgres::files()?);
    let rounds = if flags.quick { 1 } else { flags.rounds };
    let mut table = Table::default();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        measure_round(flags, &files.0, &mut table, &mut failures);
        let rates = table.to_markdown("one vCPU") + &failures.to_markdown();
        println!("{rates}");
        if flags.is_whole() {
            page::write(&counts, &rates, round)?;
        }
    }
    Ok(())
}

/// A run with disks behind both buses, beside Linux, is written to the page.
fn measure_durable(flags: &Flags) -> Result<(), String> {
    let rounds = if flags.quick { 1 } else { flags.rounds };
    let mut tables = String::new();
    for bus in flags.buses() {
        let is_wanted = |name: &str| flags.wants(name);
        let some = durable::measure(bus, flags.systems(), rounds, &is_wanted);
        println!("{some}");
        tables += &format!("{some}\n");
    }
    if flags.sietch || flags.bus.is_some() || !flags.words.is_empty() {
        return Ok(());
    }
    let quick = if flags.quick { " --quick" } else { "" };
    let command = format!("cargo run --release -p bench-storage -- --durable{quick}");
    page::write_durable(tables.trim_end(), &command)
}

/// What each system's instructions for each row are.
fn count(flags: &Flags, bus: Bus, failures: &mut Failures) -> Vec<(System, Vec<Cost>)> {
    let length = if flags.quick {
        Length::QUICK
    } else {
        Length::WHOLE
    };
    let mut all = Vec::new();
    for &system in flags.systems() {
        eprintln!("{}, {}", system.name(), bus.name());
        let is_wanted = |name: &str| flags.wants(name);
        let costs = counted::count(system, bus, length, &is_wanted, failures);
        let costs = costs.unwrap_or_else(|why| {
            failures.add(system, &format!("all instructions of {}", bus.name()), &why);
            Vec::new()
        });
        if flags.functions {
            print!("{}", counted::functions(system, &costs));
        }
        all.push((system, costs));
    }
    all
}

fn measure_round(flags: &Flags, files: &Path, table: &mut Table, failures: &mut Failures) {
    let effort = match flags.quick {
        true => Effort {
            seconds: 1,
            count: 300,
        },
        false => Effort {
            seconds: 2,
            count: 400,
        },
    };
    let places = flags
        .buses()
        .flat_map(|bus| flags.caches().iter().map(move |&cache| (bus, cache)));
    for (bus, cache) in places {
        for &system in flags.systems() {
            eprintln!("{}, {}, {}", system.name(), bus.name(), cache.name());
            let mut place = Place {
                system,
                bus,
                cache,
                effort,
                files,
                table,
                failures,
            };
            if let Err(why) = place.measure(&|name| flags.wants(name)) {
                let what = format!("all rates of {}, `{}`", bus.name(), cache.name());
                failures.add(system, &what, &why);
            }
        }
    }
}

/// A folder that is removed when it is dropped.
struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        // It lies in the folder for what may be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}
