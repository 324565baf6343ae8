//! Transfers that a program makes on an NVMe virtual function of its own (`user/libos/examples/blocks.rs`): no kernel is asked.
//!
//! The program looks for completions until the emulated disk has made one, and how long that takes is the host's. So
//! an instruction counts once for each transfer at most: looks in vain are left out, and so would loops be.

use std::process::Command;

use bench_pair::System;
use bench_pair::counter::{self, Counts};

use crate::disk::{Bus, Cache, Disk};
use crate::shell::Shell;

const PROGRAM: &str = "target/release/examples/blocks";
const SHORT: u32 = 1_000;
const MORE: u32 = 10_000;
/// Where the kernel's half of the addresses begins.
const KERNEL: u64 = 1 << 63;
/// Functions of the class of NVMe that no driver of the kernel has.
const FIND: &str = "for f in /sys/bus/pci/devices/*; do [ $(cat $f/class) = 0x010802 ] && [ -e $f/driver ] && basename $f; done; true";

/// Instructions of a transfer, as a table.
pub fn measure() -> Result<String, String> {
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "-q",
        "--release",
        "-p",
        "sietch-io",
        "--example",
        "blocks",
    ]);
    if !cargo.status().is_ok_and(|status| status.success()) {
        return Err(format!("{PROGRAM} cannot be built."));
    }
    let (kernels, own) = (
        Disk::new(Cache::Unsafe, None)?,
        Disk::new(Cache::Unsafe, None)?,
    );
    let disks = [
        kernels.flag(Bus::Nvme),
        format!("{},vf=1", own.flag(Bus::Nvme)),
    ];
    let programs = [format!("{PROGRAM}:/bin/blocks")];
    let (mut shell, _) = Shell::counted(System::Sietch, &disks, &programs)?;
    let function = shell.run(FIND)?;
    let function = function.trim();
    let mut text = String::from(
        "| a program on an NVMe virtual function, instructions for a transfer | kernel | program |\n|---|---:|---:|\n",
    );
    for (what, depth) in [("read", 1), ("write", 1), ("read", 32), ("write", 32)] {
        let mut run = |count: u32| {
            let before = counter::read()?;
            shell.run(&format!("blocks {function} {what} {depth} {count}"))?;
            Ok::<_, String>(counter::read()?.since(&before))
        };
        run(SHORT)?;
        let (short, long) = (run(SHORT)?, run(SHORT + MORE)?);
        let (kernel, program) = cost(&short, &long);
        text += &format!("| {what}, depth {depth} | {kernel:.1} | {program:.0} |\n");
    }
    Ok(text)
}

/// Of the kernel, and of the program but for looks in vain.
fn cost(short: &Counts, long: &Counts) -> (f64, f64) {
    let before: std::collections::HashMap<u64, u64> = short.iter().collect();
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
