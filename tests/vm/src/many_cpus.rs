//! Machines of many CPUs: all of them work, in one node and in two.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::Setup;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    ("64 CPUs boot, and each runs a program", one_node),
    (
        "64 CPUs of two NUMA nodes boot, and each runs a program",
        two_nodes,
    ),
];

const CPUS: &str = "64";
/// The host has far fewer.
const PATIENCE: Duration = Duration::from_secs(180);

fn one_node(setup: &Setup) -> Result<(), String> {
    all_work(setup, &["-m", "512M", "--net", "none"])
}

fn two_nodes(setup: &Setup) -> Result<(), String> {
    match setup.has_nodes() {
        true => all_work(setup, &["--nodes", "2", "-m", "512M", "--net", "none"]),
        false => Ok(()),
    }
}

fn all_work(setup: &Setup, flags: &[&str]) -> Result<(), String> {
    let program = build::c_linked(Path::new("tests/harness/many_cpus.c"), Link::Dynamic)?;
    let program = program.to_string_lossy();
    let flags = [flags, &[&program, CPUS]].concat();
    let end = setup.with_cpus(CPUS).start(&flags)?.wait(PATIENCE)?;
    expect_status(&end, 0).map_err(|why| format!("{why}: {}", end.console))
}
