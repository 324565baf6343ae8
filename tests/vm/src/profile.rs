//! The profiler, on Redis under load.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::Test;
use crate::guest::{Setup, sietch};
use crate::redis;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "A profile of Redis names its functions and the kernel's",
        names_functions,
    ),
    (
        "A profile whose rings are too small says how many samples were lost",
        counts_losses,
    ),
    (
        "A profile of waits names the call that waits and who ends the wait",
        names_waits,
    ),
    (
        "sietch wakeups shows live who wakes Redis, and by which way through TCP",
        shows_wakeups,
    ),
    (
        "A running machine is profiled, and then drawn or printed as perf script does",
        running_machine,
    ),
];

const LOAD: &[&str] = &["-n", "20000", "-c", "20", "-t", "set,get"];
/// Functions of Redis that it exports to its modules, each called by the one before.
const REDIS: &[&str] = &["aeMain", "readQueryFromClient", "processCommand", "call"];
/// The kernel's part in a request: the call, and TCP.
const KERNEL: &[&str] = &["linux::dispatch::syscall", "inet::tcp::"];

/// Runs Redis under load with `--profile`; gives the profile and what the command said.
fn profile_redis(setup: &Setup, flags: &[&str], name: &str) -> Result<(String, String), String> {
    let file = File::new(name);
    let path = file.0.display().to_string();
    let flags = [&["--profile", &path], flags].concat();
    let (guest, address) = redis::start(setup, &flags, &["--save", ""])?;
    redis::benchmark(&guest, address, LOAD)?;
    let end = guest.stop()?;
    let profile = fs::read_to_string(&file.0).map_err(|error| format!("{path}: {error}"))?;
    Ok((profile, end.console))
}

fn expect_stack(profile: &str, functions: &[&str]) -> Result<(), String> {
    let holds = |line: &str| {
        let mut rest = line;
        functions.iter().all(|function| match rest.find(function) {
            Some(at) => {
                rest = &rest[at..];
                true
            }
            None => false,
        })
    };
    match profile.lines().any(holds) {
        true => Ok(()),
        false => Err(format!("no stack leads through {functions:?}")),
    }
}

fn names_functions(setup: &Setup) -> Result<(), String> {
    // Room for all samples, however late a busy host takes them.
    let (profile, said) = profile_redis(setup, &["--profile-ring", "4096"], "cpu.folded")?;
    expect_stack(&profile, REDIS)?;
    expect_stack(&profile, KERNEL)?;
    expect_stack(&profile, &["aeMain", "write", "linux::dispatch::syscall"])?;
    if !said.contains("none lost") {
        return Err(format!("samples were lost: {said}"));
    }
    Ok(())
}

fn counts_losses(setup: &Setup) -> Result<(), String> {
    let (profile, said) = profile_redis(setup, &["--profile-ring", "1"], "lossy.folded")?;
    let words: Vec<&str> = said.split_whitespace().collect();
    let lost = words.iter().position(|word| *word == "lost");
    let lost = lost.and_then(|at| words[at.checked_sub(1)?].parse::<u64>().ok());
    match lost {
        Some(1..) if !profile.is_empty() => Ok(()),
        _ => Err(format!("the rings were too small, and yet: {said}")),
    }
}

fn names_waits(setup: &Setup) -> Result<(), String> {
    let (profile, _) = profile_redis(setup, &["--off-cpu"], "waits.folded")?;
    expect_stack(
        &profile,
        &[
            "aeMain",
            "epoll_wait",
            "ipc::epoll",
            "--;",
            "inet::tcp::",
            "sched::wake",
        ],
    )
}

fn shows_wakeups(setup: &Setup) -> Result<(), String> {
    let name = format!("vm-test-wakeups-{}", std::process::id());
    let (guest, address) = redis::start(setup, &["--name", &name], &["--save", ""])?;
    let watcher = sietch()
        .args(["wakeups", "--seconds", "3", &name])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("sietch wakeups: {error}"))?;
    redis::benchmark(&guest, address, LOAD)?;
    let shown = watcher
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&shown.stdout);
    let said = String::from_utf8_lossy(&shown.stderr);
    guest.stop()?;
    let is_head = |line: &&str| line.contains("redis-server ") && line.contains(", woken by ");
    let heads: Vec<&str> = text.lines().filter(is_head).collect();
    if heads.is_empty() || !heads.iter().any(|line| line.contains(" in epoll_wait")) {
        return Err(format!("nobody wakes Redis in epoll_wait: {text} {said}"));
    }
    let way = text.replace('\n', ";");
    expect_stack(&way, &["sched::wake", "inet::tcp::"])?;
    match said.contains(" waits on ") {
        true => Ok(()),
        false => Err(format!("it does not say how much it saw: {said}")),
    }
}

fn running_machine(setup: &Setup) -> Result<(), String> {
    let name = format!("vm-test-{}", std::process::id());
    let (guest, address) = redis::start(setup, &["--name", &name], &["--save", ""])?;
    for (file, must_hold) in [("now.svg", "processCommand"), ("now.perf", "cpu-clock:")] {
        let file = File::new(file);
        let path = file.0.display().to_string();
        let mut recorder = sietch()
            .args(["profile", "--seconds", "2", "--output", &path, &name])
            .spawn()
            .map_err(|error| format!("sietch profile: {error}"))?;
        redis::benchmark(&guest, address, LOAD)?;
        let status = recorder.wait().map_err(|error| error.to_string())?;
        let profile = fs::read_to_string(&file.0).map_err(|error| format!("{path}: {error}"))?;
        if !status.success() || !profile.contains(must_hold) {
            return Err(guest.explain(&format!("gave no profile with {must_hold}")));
        }
    }
    guest.stop().map(|_| ())
}

/// A file for one test, removed afterwards.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("sietch-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
