//! Machines of many CPUs: all of them work, in one node and in two, and where the host has fewer.

use std::path::Path;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity};

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

/// What only our kernel counts.
pub const TESTS_OF_NAPS: &[Test] = &[(
    "CPUs that take turns on one of the host's nap in long waits for a lock, and lose nothing",
    naps,
)];

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

/// The host stops a CPU that has a lock time and again.
fn naps(setup: &Setup) -> Result<(), String> {
    let host_cpu = a_cpu_of_the_host()?;
    let flags = ["--cpuset-cpus", &host_cpu, "--net", "none"];
    run(setup, &flags, Path::new("tests/harness/naps.c"), &[])
}

/// One that this process may use.
fn a_cpu_of_the_host() -> Result<String, String> {
    let all = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu));
    first.map(|cpu| cpu.to_string()).ok_or("no CPU".into())
}

fn all_work(setup: &Setup, flags: &[&str]) -> Result<(), String> {
    let source = Path::new("tests/harness/many_cpus.c");
    run(&setup.with_cpus(CPUS), flags, source, &[CPUS])
}

fn run(setup: &Setup, flags: &[&str], source: &Path, words: &[&str]) -> Result<(), String> {
    let program = build::c_linked(source, Link::Dynamic)?;
    let program = program.to_string_lossy();
    let arguments = [flags, &[&program], words].concat();
    let end = setup.start(&arguments)?.wait(PATIENCE)?;
    expect_status(&end, 0).map_err(|why| format!("{why}: {}", end.console))
}
