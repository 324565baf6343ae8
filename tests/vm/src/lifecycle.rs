//! Machines in the background, by name: `ps`, `port`, `inspect`, `wait`, `logs`, `rm` and `run --rm`.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{Setup, sietch, state_folder};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a machine in the background is listed, inspected, waited for and removed by its name",
        by_name,
    ),
    ("of a machine with --rm nothing is kept", nothing_kept),
    (
        "a machine that is stopped before its program starts ends at once",
        stopped_at_once,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// What a command says, which must end with `status`.
pub fn said(command: &mut Command, status: i32) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    match output.status.code() == Some(status) {
        true => Ok(said),
        false => Err(format!("{command:?} ends with {}: {said}", output.status)),
    }
}

/// Fails unless `sietch` with these arguments ends with `status` and says all of that.
pub fn expect(args: &[&str], status: i32, words: &[&str]) -> Result<(), String> {
    let said = said(sietch().args(args), status)?;
    match words.iter().find(|word| !said.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("{args:?} never says {word:?}: {said}")),
    }
}

fn start(setup: &Setup, flags: &[&str], script: &str) -> Result<(), String> {
    let program = ["busybox", "sh", "-c", script];
    said(&mut setup.command(&[&["-d"], flags, &program].concat()), 0).map(drop)
}

fn wait_for_words(name: &str) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let is_said = |log: &str| log.lines().any(|line| line.trim() == "two");
    while !is_said(&said(sietch().args(["logs", name]), 0)?) {
        if Instant::now() > deadline {
            return Err("its program says nothing".into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn by_name(setup: &Setup) -> Result<(), String> {
    let name = "kept";
    let script = "trap 'echo bye; exit 9' TERM; echo one; echo two; while :; do sleep 1; done";
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let forward = format!("127.0.0.1:{port}:80");
    start(setup, &["--name", name, "-p", &forward], script)?;
    wait_for_words(name)?;
    expect(&["ps"], 0, &[name, "Up "])?;
    expect(
        &["port", name],
        0,
        &[&format!("80/tcp -> 127.0.0.1:{port}")],
    )?;
    expect(
        &["inspect", name],
        0,
        &["\"running\": true", "\"exit_code\": null"],
    )?;
    expect(&["rm", name], 125, &["The machine kept runs"])?;
    expect(&["stop", name], 0, &[name])?;
    expect(&["wait", name], 0, &["9\n"])?;
    expect(&["ps", "-a"], 0, &[name, "Exited (9)"])?;
    expect(
        &["inspect", name],
        0,
        &["\"status\": \"exited\"", "\"exit_code\": 9"],
    )?;
    let last = said(sietch().args(["logs", "-n", "1", name]), 0)?;
    if last.trim() != "bye" {
        return Err(format!("the last line of the log is {last:?}"));
    }
    expect(&["restart", name], 0, &[name])?;
    wait_for_words(name)?;
    expect(&["ps"], 0, &[name, "Up "])?;
    expect(&["rm", "-f", name], 0, &[name])?;
    for command in ["inspect", "wait", "rm", "logs"] {
        expect(&[command, name], 125, &["No machine is called kept"])?;
    }
    Ok(())
}

fn nothing_kept(setup: &Setup) -> Result<(), String> {
    let name = "not-kept";
    let args = ["--rm", "--net", "none", "--name", name, "busybox", "true"];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    crate::status::expect_status(&end, 0)?;
    let folder = state_folder().join("sietch").join(name);
    if folder.exists() {
        return Err("its folder is there".into());
    }
    // Its session removes the folder, too.
    start(setup, &["--rm", "--name", name], "sleep 1000")?;
    expect(&["rm", "-f", name], 0, &[name])?;
    match folder.exists() {
        false => Ok(()),
        true => Err("its folder is there after rm -f".into()),
    }
}

fn stopped_at_once(setup: &Setup) -> Result<(), String> {
    let name = "stopped-at-once";
    start(setup, &["--name", name], "sleep 1000")?;
    expect(&["stop", name], 0, &[name])?;
    // As SIGTERM ends a program, not as a machine that did not hear.
    expect(&["wait", name], 0, &["143\n"])?;
    expect(&["rm", name], 0, &[name])
}
