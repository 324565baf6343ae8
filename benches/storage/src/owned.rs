//! Transfers of a program on blocks that it owns: on an area's ring (`user/libos/examples/area_io.rs`), which the kernel
//! translates, and on an NVMe virtual function (`user/libos/examples/blocks.rs`), where no kernel is asked.
//!
//! On a function the program looks for completions until the emulated disk has made one, and how long that takes is the
//! host's. So an instruction of the program's counts once for each transfer at most: looks in vain are left out, and so would
//! loops be.

use std::collections::HashMap;
use std::process::Command;

use bench_pair::System;
use bench_pair::counter::{self, Counts};
use bench_pair::names::Names;

use crate::counted::{self, Cost};
use crate::disk::{Bus, Cache, Disk};
use crate::shell::Shell;

const SHORT: u32 = 1_000;
const MORE: u32 = 10_000;
/// How often; the median counts.
const SAMPLES: usize = 3;
const LOADS: [(&str, u32); 4] = [("read", 1), ("write", 1), ("read", 32), ("write", 32)];
/// Where the kernel's half of the addresses begins.
const KERNEL: u64 = 1 << 63;
/// Functions of the class of NVMe that no driver of the kernel has.
pub const FIND: &str = "for f in /sys/bus/pci/devices/*; do [ $(cat $f/class) = 0x010802 ] && [ -e $f/driver ] && basename $f; done; true";

/// Instructions of a transfer on an area behind each of these buses, and on a function.
pub fn measure(buses: impl Iterator<Item = Bus>) -> Result<Vec<Cost>, String> {
    let mut costs = Vec::new();
    for bus in buses {
        costs.append(&mut on_area(bus)?);
    }
    costs.append(&mut on_function()?);
    Ok(costs)
}

/// As a table.
pub fn table(costs: &[Cost]) -> String {
    let head = "| transfers of 4 KiB, instructions | kernel | program |\n|---|---:|---:|\n";
    let row = |cost: &Cost| {
        let (name, kernel, program) = (&cost.name, cost.kernel, cost.program);
        format!("| {name} | {kernel:.0} | {program:.0} |\n")
    };
    costs
        .iter()
        .fold(head.to_string(), |table, cost| table + &row(cost))
}

/// The kernel's functions behind each row.
pub fn functions(costs: &[Cost]) -> String {
    counted::functions(System::Sietch, costs)
}

fn on_area(bus: Bus) -> Result<Vec<Cost>, String> {
    let program = example("area_io")?;
    let disk = Disk::new(Cache::Unsafe, None)?;
    let (mut shell, names) = Shell::counted(System::Sietch, &[disk.flag(bus)], &[program])?;
    let [name, _] = bus.disks();
    shell.run(&format!("echo format {name} >/dev/vsa/control"))?;
    shell.run(&format!(
        "echo create {name} 0 60000000 it >/dev/vsa/control"
    ))?;
    let what = format!("an area's ring, {}", bus.name());
    rows(&mut shell, &names, &what, "area_io /dev/vsa/it")
}

fn on_function() -> Result<Vec<Cost>, String> {
    let program = example("blocks")?;
    let (kernels, own) = (
        Disk::new(Cache::Unsafe, None)?,
        Disk::new(Cache::Unsafe, None)?,
    );
    let disks = [
        kernels.flag(Bus::Nvme),
        format!("{},vf=1", own.flag(Bus::Nvme)),
    ];
    let (mut shell, names) = Shell::counted(System::Sietch, &disks, &[program])?;
    let function = shell.run(FIND)?;
    let command = format!("blocks {}", function.trim());
    rows(&mut shell, &names, "an NVMe virtual function", &command)
}

/// Builds an example of `sietch-io`; what to add to a machine.
fn example(name: &str) -> Result<String, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "-q", "--release", "-p", "sietch-io", "--example"]);
    match cargo
        .arg(name)
        .status()
        .is_ok_and(|status| status.success())
    {
        true => Ok(format!("target/release/examples/{name}:/bin/{name}")),
        false => Err(format!("The example {name} cannot be built.")),
    }
}

fn rows(shell: &mut Shell, names: &Names, on: &str, command: &str) -> Result<Vec<Cost>, String> {
    let mut rows = Vec::new();
    for (what, depth) in LOADS {
        let name = format!("{on}: {what}, depth {depth}");
        let mut run = |count: u32| {
            let before = counter::read()?;
            shell.run(&format!("{command} {what} {depth} {count}"))?;
            Ok::<_, String>(counter::read()?.since(&before))
        };
        run(SHORT)?;
        let mut costs = Vec::new();
        for _ in 0..SAMPLES {
            let (short, long) = (run(SHORT)?, run(SHORT + MORE)?);
            costs.push(Cost {
                program: of_program(&short, &long),
                ..Cost::new(name.clone(), &short, &long, MORE, names)
            });
        }
        costs.sort_by(|one, other| one.kernel.total_cmp(&other.kernel));
        rows.push(costs.swap_remove(SAMPLES / 2));
    }
    Ok(rows)
}

/// Of the program but for looks in vain.
fn of_program(short: &Counts, long: &Counts) -> f64 {
    let before: HashMap<u64, u64> = short.iter().collect();
    let each = |(address, count): (u64, u64)| {
        let before = before.get(&address).copied().unwrap_or(0);
        ((count as f64 - before as f64) / f64::from(MORE)).clamp(0.0, 1.0)
    };
    long.iter()
        .filter(|(address, _)| *address < KERNEL)
        .map(each)
        .sum()
}
