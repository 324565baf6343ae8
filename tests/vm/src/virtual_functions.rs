//! Virtual functions of a card: made at boot, served by the physical function, which goes on
//! serving the kernel's stack. `docs/devices.md` tells how.

use std::path::Path;

use crate::Test;
use crate::build::{self, Link};
use crate::disks::Image;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis serves beside the most virtual functions of an 82576",
        serves_beside,
    ),
    (
        "virtual functions of two cards are on the bus, each behind the IOMMU with a domain and addresses of its own",
        on_the_bus,
    ),
    (
        "there are seven virtual functions at most, however many are asked for",
        too_many,
    ),
    (
        "a program that floods a virtual function's mailbox gets its answer and disturbs nobody",
        flood,
    ),
];

const PROGRAM: &str = "tests/harness/vf_mailbox.c";
const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const FOLDER: &str = "/sys/bus/pci/devices";

/// Flags for a card with so many virtual functions.
fn flags(vfs: &'static str) -> [&'static str; 3] {
    ["--iommu", "--kernel-option", vfs]
}

fn serves_beside(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let setup = setup.with_nic("igb");
    let (guest, address) = redis::start(&setup, &flags("igb.max_vfs=7"), &["--save", ""])?;
    redis::benchmark(&guest, address, &["-n", "5000", "-t", "set,get"])?;
    let end = guest.stop()?;
    expect_status(&end, 0)?;
    match end.console.contains("refused") {
        true => Err(format!("something was refused: {}", end.console)),
        false => Ok(()),
    }
}

/// What a machine with so many, and more flags, says to a script.
fn said(setup: &Setup, vfs: &'static str, more: &[&str], script: &str) -> Result<String, String> {
    let setup = setup.with_nic("igb");
    let program = ["busybox", "sh", "-c", script];
    let end = setup.start(&[&flags(vfs)[..], more, &program].concat())?;
    let end = end.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    Ok(end.console)
}

fn on_the_bus(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let disk = Image::new("beside-vfs", 1 << 20)?;
    let script = format!(
        "cat {FOLDER}/*/resource; for at in 12.0 12.2; do echo $(cat {FOLDER}/0000:00:$at/vendor {FOLDER}/0000:00:$at/device); \
         ls {FOLDER}/0000:00:$at/resource0; done; ls {FOLDER}; cat /proc/iommu"
    );
    let flag = disk.flag(",bus=nvme,vf=1");
    // One has addresses of the same length as the disk's: both would fit into the same gap.
    let alone = format!("cat {FOLDER}/*/resource");
    lie_apart(&said(setup, "igb.max_vfs=1", &[&flag], &alone)?)?;
    let console = said(setup, "igb.max_vfs=2", &[&flag], &script)?;
    lie_apart(&console)?;
    let lines = [
        "0x8086 0x10ca",
        "0000:00:12.0/resource0",
        "0000:00:12.2/resource0",
        "00:02.0 unit 0 driven",
        "00:12.0 unit 0 undriven refused 0",
        "00:12.2 unit 0 undriven refused 0",
    ];
    match lines.iter().find(|line| !console.contains(**line)) {
        Some(missing) => Err(format!("no {missing}: {console}")),
        None if console.contains("0000:00:12.4") => Err("there is a third one".into()),
        None => Ok(()),
    }
}

/// No two base addresses that a console shows, as start, last byte and kind, have a byte in common.
fn lie_apart(console: &str) -> Result<(), String> {
    let mut ranges: Vec<(u64, u64)> = console.lines().filter_map(base_address).collect();
    ranges.sort_unstable();
    // Each virtual function of the card has two, that of the disk one.
    if ranges.len() < 5 {
        return Err(format!("there are too few addresses: {console}"));
    }
    match ranges.windows(2).find(|pair| pair[1].0 <= pair[0].1) {
        Some(pair) => Err(format!("two share addresses: {pair:x?}: {console}")),
        None => Ok(()),
    }
}

/// Where it begins and ends, of one that is there.
fn base_address(line: &str) -> Option<(u64, u64)> {
    let numbers = line.split_whitespace().map(|word| {
        let digits = word.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    match numbers.collect::<Option<Vec<_>>>()?[..] {
        [start, last, _] if start != 0 => Some((start, last)),
        _ => None,
    }
}

fn too_many(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let console = said(setup, "igb.max_vfs=200", &[], &format!("ls {FOLDER}"))?;
    let count = console.matches("0000:00:12.").count() + console.matches("0000:00:13.").count();
    match count {
        7 => Ok(()),
        _ => Err(format!("{count} are there: {console}")),
    }
}

fn flood(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let setup = setup.with_nic("igb");
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let added = format!("{}:/vf", program.display());
    let script = format!(
        "/usr/bin/redis-server --save '' --protected-mode no & \
         /vf {FOLDER}/0000:00:12.0/resource0 20000; echo flood ended $?; wait"
    );
    let more = [
        "--add", &added, "--add", REDIS, "busybox", "sh", "-c", &script,
    ];
    let args = [&flags("igb.max_vfs=2")[..], &more].concat();
    let (guest, address) = setup.serve(6379, &args)?;
    guest.expect_answer(address, b"PING\r\n")?;
    redis::benchmark(&guest, address, &["-n", "2000", "-t", "set,get"])?;
    guest.expect("flood ended 0", BOOT_PATIENCE)?;
    redis::benchmark(&guest, address, &["-n", "1000", "-t", "set,get"])?;
    let end = guest.stop()?;
    let hellos = end.console.matches("address 42:54:").count();
    match hellos {
        2 => Ok(()),
        _ => Err(format!("{hellos} answers: {}", end.console)),
    }
}
