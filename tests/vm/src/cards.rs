//! Network cards and the DMA contract: `docs/dma.md` tells the story.

use std::process::Command;

use qemu::Nic;
use qemu::namespace::{self, MACHINE_FLAG, TAP};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis serves behind virtio-net when no two frames are neighbours",
        virtio_net_shuffled,
    ),
    (
        "Redis serves behind an e1000 when no two frames are neighbours",
        e1000_shuffled,
    ),
    (
        "Redis serves behind an 82576 when no two frames are neighbours",
        igb_shuffled,
    ),
    ("each card answers pings of every length", pings),
    (
        "an e1000 is not brought to a tap interface with several queues",
        one_queue_of_several,
    ),
    (
        "an e1000 whose areas are scattered is refused at once, with the page and the way out",
        broken_contract,
    ),
    (
        "memory for devices comes with the alignment, boundary, limit and caching asked for",
        every_kind_of_memory,
    ),
];

const SHUFFLE: [&str; 2] = ["--kernel-option", "frames=shuffle"];

fn virtio_net_shuffled(setup: &Setup) -> Result<(), String> {
    serves_shuffled(setup)
}

fn e1000_shuffled(setup: &Setup) -> Result<(), String> {
    match setup.has_our_pci() {
        true => serves_shuffled(&setup.with_nic("e1000")),
        false => Ok(()),
    }
}

fn igb_shuffled(setup: &Setup) -> Result<(), String> {
    match setup.has_our_pci() {
        true => serves_shuffled(&setup.with_nic("igb")),
        false => Ok(()),
    }
}

/// Payloads from none to what takes many frames. The host can only ping machines that
/// it reaches by an address of their own.
fn pings(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_address() {
        return Ok(());
    }
    for nic in ["virtio", "e1000", "igb"] {
        let (guest, address) = redis::start(&setup.with_nic(nic), &[], &["--save", ""])?;
        for bytes in ["0", "57", "1472", "2801", "40000"] {
            ping_patiently(&address.ip().to_string(), bytes)
                .map_err(|why| format!("{nic}: {why}"))?;
        }
        expect_status(&guest.stop()?, 0)?;
    }
    Ok(())
}

/// A series of pings that comes back. ping(8) waits for the last answers as long as two of the
/// answers before took, and a busy host takes longer: there may be two more.
fn ping_patiently(host: &str, bytes: &str) -> Result<(), String> {
    ping(host, bytes)
        .or_else(|_| ping(host, bytes))
        .or_else(|_| ping(host, bytes))
}

/// Ten pings with so much payload, of which nine must come back: the host is busy.
fn ping(host: &str, bytes: &str) -> Result<(), String> {
    let output = Command::new("ping")
        .args(["-n", "-i", "0.01", "-c", "10", "-W", "2", "-s", bytes, host])
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.matches(" bytes from ").count() {
        9.. => Ok(()),
        _ => Err(format!("{bytes} bytes: {said}")),
    }
}

/// QEMU would stop to read all queues but the first as soon as the card was full.
fn one_queue_of_several(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_address() || !namespace::suit(Nic::Virtio) {
        return Ok(());
    }
    let tap = format!("tap={TAP}");
    let flags = ["--net", &tap, "--ip", MACHINE_FLAG, "busybox", "true"];
    let output = setup.with_nic("e1000").command(&flags).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    match said.contains("make the interface without `multi_queue`") {
        true if !output.status.success() => Ok(()),
        _ => Err(format!("{}, and: {said}", output.status)),
    }
}

fn serves_shuffled(setup: &Setup) -> Result<(), String> {
    let (guest, address) = redis::start(setup, &SHUFFLE, &["--save", ""])?;
    redis::benchmark(&guest, address, &["-n", "20000", "-t", "set,get"])?;
    redis::benchmark(
        &guest,
        address,
        &["-n", "500", "-d", "65536", "-t", "set,get"],
    )?;
    expect_status(&guest.stop()?, 0)
}

/// Three kinds of caching, four sizes, three alignments, three kinds of limits, each twice
/// in a row; then one that must not be met.
fn every_kind_of_memory(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    for option in ["frames=shuffle", "frames=ordinary"] {
        let flags = [
            "--kernel-option",
            option,
            "--kernel-option",
            "dma.self_test=1",
        ];
        let flags = [&flags[..], &["--net", "none", "busybox", "true"]].concat();
        let end = setup.start(&flags)?.wait(BOOT_PATIENCE)?;
        expect_status(&end, 0)?;
        let wanted = "216 requests were met, the next not: no free memory ends below 0x10000";
        if !end.console.contains(wanted) {
            return Err(format!("`{wanted}` is not in: {}", end.console));
        }
    }
    Ok(())
}

fn broken_contract(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let mut flags = SHUFFLE.to_vec();
    flags.extend(["--kernel-option", "e1000.break_contract=1"]);
    flags.extend(["busybox", "true"]);
    let end = setup.with_nic("e1000").start(&flags)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    let wanted = [
        "The device e1000 was not started: receive area 0 of 65536 bytes: page 1 of 16 lies at",
        "DmaSource::dma_alloc",
    ];
    match wanted.iter().find(|words| !end.console.contains(*words)) {
        Some(words) => Err(format!("`{words}` is not in: {}", end.console)),
        None => Ok(()),
    }
}
