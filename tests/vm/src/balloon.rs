//! Machines with a balloon: memory that the host takes back and gives again (`sietch run --balloon`, `sietch update -m`).

use std::cell::Cell;

use crate::Test;
use crate::attached::wait_until;
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

/// Asks for so many MiB and waits for them: the command itself does not wait for long where the host is busy.
fn update(name: &str, mib: u64) -> Result<(), String> {
    expect(&["update", "-m", &format!("{mib}M"), name], 0, &[name])?;
    wait_until(|| Ok(has_mib(name)? == mib))
}

/// The limit and the guest's use, in MiB, as `stats` says them; none until the machine has answered.
fn stats(name: &str) -> Result<Option<(u64, u64)>, String> {
    let template = "{{.limit_bytes}} {{.guest_bytes}}";
    let line = ["stats", "--no-stream", "--format", template, name];
    let told = said(sietch().args(line), 0)?;
    let figures: Vec<u64> = told.split_whitespace().flat_map(str::parse).collect();
    match figures[..] {
        [limit, used] => Ok(Some((limit >> 20, used >> 20))),
        _ => Ok(None),
    }
}

fn gives_and_takes(setup: &Setup) -> Result<(), String> {
    let name = "balloon";
    let flags = ["-d", "--net", "none", "--balloon", "-m", "256M"];
    let program = ["--name", name, "busybox", "sleep", "1000"];
    said(&mut setup.command(&[&flags[..], &program].concat()), 0)?;
    let meminfo = |word: &str| figure(name, "/proc/meminfo", word);
    wait_until(|| Ok(meminfo("Balloon:").is_ok()))?;
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
    let (given_kib, left) = (GIVEN_MIB << 10, MEMORY_MIB - GIVEN_MIB);
    update(name, left)?;
    is("Balloon:", meminfo("Balloon:")?, given_kib..=given_kib)?;
    is("MemTotal:", meminfo("MemTotal:")?, total..=total)?;
    let most = free - given_kib + (8 << 10);
    is("MemFree:", meminfo("MemFree:")?, 0..=most)?;
    let told = Cell::new(None);
    wait_until(|| {
        told.set(stats(name)?);
        Ok(told.get().is_some())
    })?;
    let (limit, used) = told.get().unwrap_or_default();
    is("the limit", limit, left..=left)?;
    is("the use", used, 1..=left - 1)?;
    // It is asked again, and answers again.
    wait_until(|| Ok(stats(name)?.is_some()))?;
    // A program needs more than is left, and gets it.
    let dd = "busybox dd if=/dev/zero of=/dev/null bs=150M count=1 iflag=fullblock";
    let line: Vec<&str> = ["exec", name].into_iter().chain(dd.split(' ')).collect();
    expect(&line, 0, &["1+0 records out"])?;
    is("oom_kill", figure(name, "/proc/vmstat", "oom_kill")?, 0..=0)?;
    is("MiB after that", has_mib(name)?, left + 1..=MEMORY_MIB)?;
    // The host asks again, and gives all.
    update(name, left)?;
    update(name, MEMORY_MIB)?;
    is("Balloon: at last", meminfo("Balloon:")?, 0..=0)?;
    // More than it can give: it stays up, and says so.
    expect(&["update", "-m", "8M", name], 0, &["not 8 MiB: it keeps"])?;
    expect(&["exec", name, "busybox", "true"], 0, &[])?;
    expect(&["stop", "-t", "0", name], 0, &[name])?;
    expect(&["rm", name], 0, &[name])
}
