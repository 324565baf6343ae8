//! Instructions for a transfer, and the functions that they are of.
//!
//! A command runs with few transfers and with many; the difference is the transfers': fio's start and
//! end, and what is typed into the shell, are in both.

use std::collections::HashMap;

use bench_pair::System;
use bench_pair::counter::{self, Counts};
use bench_pair::names::Names;

use crate::disk::{Bus, Disk, Host};
use crate::load::{self, DIRECT};
use crate::shell::Shell;

/// Where the kernel's half of the addresses begins, in both systems.
const KERNEL: u64 = 1 << 63;
/// Transfers of the short run.
const SHORT: u32 = 1_000;
/// How many more the long one has.
///
/// fio looks for some 60 ms of the clock how fast the CPU is, and what it executes meanwhile differs from run
/// to run: spread over so many it is little.
const MORE: u32 = 10_000;
/// The same with `--quick`.
const MORE_QUICK: u32 = 4_000;

/// What one transfer costs.
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
    fn new(name: String, short: &Counts, long: &Counts, more: u32, names: &Names) -> Self {
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

/// Counts all that `is_wanted` names for one system, on disks behind `bus`.
pub fn count(
    system: System,
    bus: Bus,
    quick: bool,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Cost>, String> {
    let more = if quick { MORE_QUICK } else { MORE };
    let mut all = Vec::new();
    let (raw, ext4) = (
        Disk::new(Host::Memory, false)?,
        Disk::new(Host::Memory, true)?,
    );
    let disks = [raw.flag(bus), ext4.flag(Bus::Virtio)];
    let (mut shell, names) = Shell::counted(system, &disks)?;
    let device = bus.device();
    if system.is_linux() {
        // Linux looks for disks in the background.
        shell.run(&format!(
            "for turn in $(busybox seq 100); do [ -e /sys/block/{device} ] || busybox sleep 0.1; done"
        ))?;
        // What costs Linux least.
        shell.run(&format!("echo none > /sys/block/{device}/queue/scheduler"))?;
    }
    for load in DIRECT.iter().filter(|load| is_wanted(&load.name())) {
        let command = |transfers| load.command(device, transfers);
        all.extend(difference(&mut shell, &names, load.name(), more, &command));
    }
    if bus == Bus::Virtio && is_wanted(APPENDS) {
        shell.run("mkdir -p /mnt; busybox mount -t ext4 /dev/vdb /mnt")?;
        let more = more / 8;
        all.extend(difference(
            &mut shell,
            &names,
            APPENDS.into(),
            more,
            &load::appends,
        ));
    }
    Ok(all)
}

/// The row of ext4.
pub const APPENDS: &str = "append of 4 KiB to a file of ext4, and `fsync`";

/// A row that fails is missing.
fn difference(
    shell: &mut Shell,
    names: &Names,
    name: String,
    more: u32,
    command: &dyn Fn(u32) -> String,
) -> Option<Cost> {
    let counted = (|| {
        // Once for caches, and for the code that is translated.
        run(shell, &command(SHORT))?;
        let short = run(shell, &command(SHORT))?;
        let long = run(shell, &command(SHORT + more))?;
        Ok::<_, String>(Cost::new(name.clone(), &short, &long, more, names))
    })();
    match counted {
        Ok(cost) => {
            eprintln!("  {name}: {:.0} + {:.0}", cost.kernel, cost.program);
            Some(cost)
        }
        Err(why) => {
            eprintln!("  {name} fails: {why}");
            None
        }
    }
}

fn run(shell: &mut Shell, command: &str) -> Result<Counts, String> {
    let before = counter::read()?;
    shell.run(command)?;
    Ok(counter::read()?.since(&before))
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
