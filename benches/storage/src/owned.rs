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
const FIND: &str = "for f in /sys/bus/pci/devices/*; do [ $(cat $f/class) = 0x010802 ] && [ -e $f/driver ] && basename $f; done; true";

/// Instructions of a transfer, as a table.
pub fn measure() -> Result<String, String> {
    let mut text =
        String::from("| transfers of 4 KiB, instructions | kernel | program |\n|---|---:|---:|\n");
    for bus in Bus::ALL {
        text += &on_area(bus)?;
    }
    text += &on_function()?;
    Ok(text)
}

fn on_area(bus: Bus) -> Result<String, String> {
    let program = example("area_io")?;
    let disk = Disk::new(Cache::Unsafe, None)?;
    let (mut shell, _) = Shell::counted(System::Sietch, &[disk.flag(bus)], &[program])?;
    let [name, _] = bus.disks();
    shell.run(&format!("echo format {name} >/dev/vsa/control"))?;
    shell.run(&format!(
        "echo create {name} 0 60000000 it >/dev/vsa/control"
    ))?;
    let what = format!("an area's ring, {}", bus.name());
    rows(&mut shell, &what, "area_io /dev/vsa/it")
}

fn on_function() -> Result<String, String> {
    let program = example("blocks")?;
    let (kernels, own) = (
        Disk::new(Cache::Unsafe, None)?,
        Disk::new(Cache::Unsafe, None)?,
    );
    let disks = [
        kernels.flag(Bus::Nvme),
        format!("{},vf=1", own.flag(Bus::Nvme)),
    ];
    let (mut shell, _) = Shell::counted(System::Sietch, &disks, &[program])?;
    let function = shell.run(FIND)?;
    let command = format!("blocks {}", function.trim());
    rows(&mut shell, "an NVMe virtual function", &command)
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

fn rows(shell: &mut Shell, on: &str, command: &str) -> Result<String, String> {
    let mut text = String::new();
    for (what, depth) in LOADS {
        let mut run = |count: u32| {
            let before = counter::read()?;
            shell.run(&format!("{command} {what} {depth} {count}"))?;
            Ok::<_, String>(counter::read()?.since(&before))
        };
        run(SHORT)?;
        let mut costs = Vec::new();
        for _ in 0..SAMPLES {
            costs.push(cost(&run(SHORT)?, &run(SHORT + MORE)?));
        }
        costs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (kernel, program) = costs[SAMPLES / 2];
        text += &format!("| {on}: {what}, depth {depth} | {kernel:.0} | {program:.0} |\n");
    }
    Ok(text)
}

/// Of the kernel, and of the program but for looks in vain.
fn cost(short: &Counts, long: &Counts) -> (f64, f64) {
    let before: HashMap<u64, u64> = short.iter().collect();
    let (mut kernel, mut program) = (0.0, 0.0);
    for (address, count) in long.iter() {
        let before = before.get(&address).copied().unwrap_or(0);
        let each = (count as f64 - before as f64) / f64::from(MORE);
        match address < KERNEL {
            true => program += each.clamp(0.0, 1.0),
            false => kernel += each,
        }
    }
    (kernel, program)
}
