//! Machines with a balloon: memory that the host takes back and gives again (`sietch run --balloon`, `sietch update -m`).

use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{Setup, sietch};
use crate::lifecycle::{expect, said};

/// The tests.
pub const TESTS: &[Test] = &[(
    "a machine with a balloon gives memory back and gets it again, by its host's word or when a program needs it",
    gives_and_takes,
)];

/// What the machine begins with, in MiB, and what it is to give back.
const MEMORY_MIB: u64 = 256;
const GIVEN_MIB: u64 = 128;
const PATIENCE: Duration = Duration::from_secs(60);

/// A line of a file in the machine that begins with that word: the number after it.
fn figure(name: &str, file: &str, word: &str) -> Result<u64, String> {
    let text = said(sietch().args(["exec", name, "busybox", "cat", file]), 0)?;
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or(format!("{file} has no {word}: {text}"))
}

fn is(what: &str, found: u64, wanted: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    match wanted.contains(&found) {
        true => Ok(()),
        false => Err(format!("{what} is {found} and not in {wanted:?}")),
    }
}

/// MiB that QEMU says the machine has.
fn has_mib(name: &str) -> Result<u64, String> {
    let template = "{{.memory_now_mib}}";
    let told = said(sietch().args(["inspect", "-f", template, name]), 0)?;
    told.trim()
        .parse()
        .map_err(|_| format!("no number: {told}"))
}

fn gives_and_takes(setup: &Setup) -> Result<(), String> {
    let name = "balloon";
    let flags = ["-d", "--net", "none", "--balloon", "-m", "256M"];
    let program = ["--name", name, "busybox", "sleep", "1000"];
    said(&mut setup.command(&[&flags[..], &program].concat()), 0)?;
    let meminfo = |word: &str| figure(name, "/proc/meminfo", word);
    let deadline = Instant::now() + PATIENCE;
    while meminfo("Balloon:").is_err() {
        if Instant::now() > deadline {
            return Err("the machine does not come up".into());
        }
    }
    let (total, free) = (meminfo("MemTotal:")?, meminfo("MemFree:")?);
    is("MiB at first", has_mib(name)?, MEMORY_MIB..=MEMORY_MIB)?;
    // A sentence for what cannot be.
    expect(
        &["update", "-m", "1G", name],
        125,
        &["gets more only at its start"],
    )?;
    expect(&["snapshot", name], 125, &["a balloon"])?;
    // The host takes half.
    let given_kib = GIVEN_MIB << 10;
    expect(&["update", "-m", "128M", name], 0, &[name])?;
    let left = MEMORY_MIB - GIVEN_MIB;
    is("MiB then", has_mib(name)?, left..=left)?;
    is("Balloon:", meminfo("Balloon:")?, given_kib..=given_kib)?;
    is("MemTotal:", meminfo("MemTotal:")?, total..=total)?;
    let most = free - given_kib + (8 << 10);
    is("MemFree:", meminfo("MemFree:")?, 0..=most)?;
    let stats = [
        "stats",
        "--no-stream",
        "--format",
        "{{.limit_bytes}} {{.guest_bytes}}",
        name,
    ];
    let told = said(sietch().args(stats), 0)?;
    let figures: Vec<u64> = told.split_whitespace().flat_map(str::parse).collect();
    let [limit, used] = figures[..] else {
        return Err(format!("no figures: {told}"));
    };
    is("the limit", limit >> 20, left..=left)?;
    is("the use", used, GIVEN_MIB << 20..=MEMORY_MIB << 20)?;
    // A program needs more than is left, and gets it.
    let dd = [
        "if=/dev/zero",
        "of=/dev/null",
        "bs=150M",
        "count=1",
        "iflag=fullblock",
    ];
    let line = [&["exec", name, "busybox", "dd"][..], &dd].concat();
    expect(&line, 0, &["1+0 records out"])?;
    is("oom_kill", figure(name, "/proc/vmstat", "oom_kill")?, 0..=0)?;
    is("MiB after that", has_mib(name)?, left + 1..=MEMORY_MIB)?;
    // The host asks again, and gives all.
    expect(&["update", "-m", "128M", name], 0, &[name])?;
    is("MiB again", has_mib(name)?, left..=left)?;
    expect(&["update", "-m", "256M", name], 0, &[name])?;
    is("Balloon: at last", meminfo("Balloon:")?, 0..=0)?;
    // More than it can give: it stays up, and says so.
    expect(&["update", "-m", "8M", name], 0, &["needs more than 8 MiB"])?;
    expect(&["exec", name, "busybox", "true"], 0, &[])?;
    expect(&["stop", "-t", "0", name], 0, &[name])?;
    expect(&["rm", name], 0, &[name])
}
