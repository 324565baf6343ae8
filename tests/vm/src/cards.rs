//! Network cards and the DMA contract: `docs/dma.md` tells the story.

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis is as quick behind virtio-net when no two frames are neighbours",
        virtio_net_shuffled,
    ),
    (
        "Redis is as quick behind an e1000 when no two frames are neighbours",
        e1000_shuffled,
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
/// Alternating measurements; the best of each kind counts, for the host is busy.
const ROUNDS: u32 = 2;
/// A broken contract costs a factor of hundreds; a busy host costs less than this.
const RATIO_MIN: f64 = 0.6;
/// In the story one request in ten took five seconds.
const P99_MS_MAX: f64 = 1000.0;

fn virtio_net_shuffled(setup: &Setup) -> Result<(), String> {
    is_as_quick_shuffled(setup)
}

fn e1000_shuffled(setup: &Setup) -> Result<(), String> {
    match setup.has_our_pci() {
        true => is_as_quick_shuffled(&setup.with_nic("e1000")),
        false => Ok(()),
    }
}

/// One line of redis-benchmark's table.
#[derive(Clone, Copy, Default)]
struct Figures {
    per_second: f64,
    p99_ms: f64,
}

fn is_as_quick_shuffled(setup: &Setup) -> Result<(), String> {
    let (mut ordinary, mut shuffled) = (Figures::default(), Figures::default());
    for _ in 0..ROUNDS {
        for (flags, best) in [(&[][..], &mut ordinary), (&SHUFFLE[..], &mut shuffled)] {
            let figures = measure(setup, flags)?;
            if figures.per_second > best.per_second {
                *best = figures;
            }
        }
    }
    println!(
        "     | GET per second: {:.0}, shuffled {:.0}; 99 % within {} ms, shuffled {} ms",
        ordinary.per_second, shuffled.per_second, ordinary.p99_ms, shuffled.p99_ms
    );
    if shuffled.per_second < RATIO_MIN * ordinary.per_second || shuffled.p99_ms > P99_MS_MAX {
        return Err("shuffled frames cost speed".into());
    }
    Ok(())
}

fn measure(setup: &Setup, flags: &[&str]) -> Result<Figures, String> {
    let (guest, address) = redis::start(setup, flags, &["--save", ""])?;
    let table = redis::benchmark(&guest, address, &["-n", "20000", "-t", "get"])?;
    expect_status(&guest.stop()?, 0)?;
    parse(&table).ok_or_else(|| format!("redis-benchmark said: {table}"))
}

/// `"GET","12345.6",...`: the rate is the second value, the 99th percentile the seventh.
fn parse(table: &str) -> Option<Figures> {
    let line = table.lines().find(|line| line.starts_with("\"GET\""))?;
    let values: Vec<&str> = line
        .split(',')
        .map(|value| value.trim_matches('"'))
        .collect();
    Some(Figures {
        per_second: values.get(1)?.parse().ok()?,
        p99_ms: values.get(6)?.parse().ok()?,
    })
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
        if !end.errors.contains(wanted) {
            return Err(format!("`{wanted}` is not in: {}", end.errors));
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
    match wanted.iter().find(|words| !end.errors.contains(*words)) {
        Some(words) => Err(format!("`{words}` is not in: {}", end.errors)),
        None => Ok(()),
    }
}
