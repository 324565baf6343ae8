//! Machines of two nodes: what programs are told of them, and whose frames they get.

use std::path::Path;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "numactl shows two NUMA nodes, their CPUs, memory and distances",
        hardware,
    ),
    (
        "a program gets the frames of its CPU's NUMA node, and the counters say so",
        frames,
    ),
    ("a machine without a table of NUMA nodes is one node", one),
];

const TWO_NODES: [&str; 6] = ["--nodes", "2", "-m", "512M", "--net", "none"];

fn hardware(setup: &Setup) -> Result<(), String> {
    if !setup.has_nodes() {
        return Ok(());
    }
    let flags = [&TWO_NODES[..], &["numactl", "--hardware"]].concat();
    let end = setup.start(&flags)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    let cpus = match setup.is_single() {
        true => ["node 0 cpus:", "node 1 cpus: 0"],
        false => ["node 0 cpus: 0", "node 1 cpus: 1"],
    };
    let facts = ["available: 2 nodes (0-1)", "  0:  10  20", "  1:  20  10"];
    expect_lines(&end.console, &[&facts[..], &cpus[..]].concat())?;
    for node in ["node 0 size: ", "node 1 size: "] {
        let size = end.console.lines().find_map(|line| line.strip_prefix(node));
        let mib = size.and_then(|size| size.split(' ').next()?.parse().ok());
        if !mib.is_some_and(|mib: u32| (200..=256).contains(&mib)) {
            return Err(format!("`{node}` is not about 256 MB: {}", end.console));
        }
    }
    Ok(())
}

fn frames(setup: &Setup) -> Result<(), String> {
    if !setup.has_nodes() {
        return Ok(());
    }
    let source = Path::new("tests/harness/numa.c");
    let program = build::c_linked(source, Link::Dynamic)?;
    let program = program.to_string_lossy();
    let flags = [&TWO_NODES[..], &[&program, "2"]].concat();
    let end = setup.start(&flags)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0).map_err(|why| format!("{why}: {}", end.console))
}

fn one(setup: &Setup) -> Result<(), String> {
    let flags = ["--net", "none", "numactl", "--hardware"];
    let end = setup.start(&flags)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    expect_lines(&end.console, &["available: 1 nodes (0)", "  0:  10"])
}

fn expect_lines(console: &str, wanted: &[&str]) -> Result<(), String> {
    let has = |line: &&&str| console.lines().any(|shown| shown.trim_end() == **line);
    match wanted.iter().find(|line| !has(line)) {
        Some(line) => Err(format!("`{line}` is not in: {console}")),
        None => Ok(()),
    }
}
