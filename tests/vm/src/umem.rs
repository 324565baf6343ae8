//! Programs whose malloc is `libumem.so`, as on Linux by `LD_PRELOAD`.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::Setup;
use crate::redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "libumem.so passes its own test of the malloc family",
        family,
    ),
    ("Redis serves redis-benchmark on libumem.so", serves_redis),
    (
        "umastat shows from outside what a program's heap holds",
        umastat,
    ),
];

const PRELOAD: &str = "LD_PRELOAD=/lib/libumem.so";
const FAMILY: &str = "user/umem/tests/programs/family.c";
const LOOKED_AT: &str = "tests/harness/umastat_self.c";
const PATIENCE: Duration = Duration::from_secs(300);

/// The library as a file to add to an image.
fn library() -> Result<String, String> {
    let built = build::library("umem")?;
    Ok(format!("{}:/lib/libumem.so", built.display()))
}

fn family(setup: &Setup) -> Result<(), String> {
    let library = library()?;
    let program = build::c(Path::new(FAMILY))?;
    let args = [
        "--net",
        "none",
        "--add",
        &library,
        "-e",
        PRELOAD,
        &program.to_string_lossy(),
    ];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("fine") {
        true => Ok(()),
        false => Err(format!("it says {:?}", end.console)),
    }
}

fn serves_redis(setup: &Setup) -> Result<(), String> {
    let library = library()?;
    let flags = ["--add", &library, "-e", PRELOAD];
    let (guest, address) = redis::start(setup, &flags, &["--save", ""])?;
    let load = ["-n", "5000", "-c", "50", "-t", "set,get,lpush,zadd,mset"];
    redis::benchmark(&guest, address, &load)?;
    expect_status(&guest.stop()?, 0)
}

/// By `/proc/PID/maps`, `/proc/PID/mem` and what lies behind `/proc/PID/root`.
fn umastat(setup: &Setup) -> Result<(), String> {
    let library = library()?;
    let tool = build::tool("umastat", "umastat")?;
    let tool = format!("{}:/bin/umastat", tool.display());
    let program = build::c_linked(Path::new(LOOKED_AT), Link::Dynamic)?;
    let program = program.to_string_lossy();
    let args = [
        "--net", "none", "--add", &library, "--add", &tool, "-e", PRELOAD, &program,
    ];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    let holds = |words: &[&str]| {
        let mut lines = end.console.lines();
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    };
    match holds(&["cache name", "in use"]) && holds(&["spans"]) {
        true => Ok(()),
        false => Err(format!("it says {:?}", end.console)),
    }
}
