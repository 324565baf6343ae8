//! Programs in the background that others look at and type for (`sietch attach`), and what `sietch update` changes of them.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{Setup, sietch};
use crate::lifecycle::{expect, said};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a program in the background is looked at, typed for and left alone again, and one with -t at a terminal",
        attached,
    ),
    (
        "a machine that runs gets other CPUs of the host, and is started again as it is told meanwhile",
        updated,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

fn start(setup: &Setup, flags: &[&str], script: &str) -> Result<(), String> {
    let common = ["-d", "--net", "none"];
    let program = ["busybox", "sh", "-c", script];
    said(
        &mut setup.command(&[&common[..], flags, &program].concat()),
        0,
    )
    .map(drop)
}

/// `sietch attach`, but not for ever.
fn attach(args: &[&str]) -> Result<Child, String> {
    let mut command = Command::new("timeout");
    command.arg("120").arg(sietch().get_program());
    command.arg("attach").args(args);
    command.envs(
        sietch()
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn();
    child.map_err(|error| error.to_string())
}

/// Reads until `needle` has come.
fn read_until(from: &mut impl Read, needle: &str) -> Result<String, String> {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(needle) {
            return Ok(text);
        }
        match from.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return Err(format!("{needle:?} never comes, but {text:?}")),
        }
    }
}

fn type_in(child: &mut Child, text: &str) -> Result<(), String> {
    let stdin = child.stdin.as_mut().ok_or("no input")?;
    stdin
        .write_all(text.as_bytes())
        .map_err(|error| error.to_string())
}

fn wait_for_log(name: &str, words: &str) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !said(sietch().args(["logs", name]), 0)?.contains(words) {
        if Instant::now() > deadline {
            return Err(format!("{name} never says {words:?}"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn attached(setup: &Setup) -> Result<(), String> {
    pipes(setup)?;
    at_a_terminal(setup)
}

fn pipes(setup: &Setup) -> Result<(), String> {
    let name = "attached";
    let script = "trap 'echo heard' USR1; echo ready
        while :; do if read line; then echo got $line; echo err $line >&2; fi; done";
    // Before it is there, and when it runs in nobody's sight.
    expect(&["attach", name], 125, &["No machine is called attached"])?;
    start(setup, &["-i", "--name", name], script)?;
    wait_for_log(name, "ready")?;
    let mut one = attach(&[name])?;
    let mut looker = attach(&["--no-stdin", name])?;
    let mut seen = one.stdout.take().ok_or("no output")?;
    let mut seen_too = looker.stdout.take().ok_or("no output")?;
    type_in(&mut one, "first\n")?;
    read_until(&mut seen, "got first\n")?;
    // In the background both outputs are one, in their order.
    read_until(&mut seen, "err first\n")?;
    // It may have come later than those lines were written.
    thread::scope(|scope| {
        let looks = scope.spawn(|| read_until(&mut seen_too, "got first\n"));
        while !looks.is_finished() {
            type_in(&mut one, "first\n")?;
            thread::sleep(POLL);
        }
        looks.join().map_err(|_| "the reader panicked")?
    })?;
    type_in(&mut looker, "never\n")?;
    // The end of what one types is not the program's.
    drop(one.stdin.take());
    let mut other = attach(&[name])?;
    type_in(&mut other, "second\n")?;
    let mut seen_by_other = other.stdout.take().ok_or("no output")?;
    read_until(&mut seen_by_other, "got second\n")?;
    read_until(&mut seen, "got second\n")?;
    read_until(&mut seen_too, "got second\n")?;
    said(Command::new("kill").args(["-USR1", &child_of(&other)?]), 0)?;
    read_until(&mut seen, "heard\n")?;
    if said(sietch().args(["logs", name]), 0)?.contains("never") {
        return Err("who types nothing was heard".into());
    }
    expect(&["stop", "-t", "1", name], 0, &[name])?;
    for (child, who) in [
        (&mut one, "one"),
        (&mut looker, "looker"),
        (&mut other, "other"),
    ] {
        let status = child.wait().map_err(|error| error.to_string())?;
        if !matches!(status.code(), Some(130..)) {
            return Err(format!("{who} ends with {status}"));
        }
    }
    expect(&["rm", name], 0, &[name])
}

/// The process that `timeout` runs.
fn child_of(timeout: &Child) -> Result<String, String> {
    let path = format!("/proc/{0}/task/{0}/children", timeout.id());
    let children = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let first = children.split_whitespace().next();
    first.map(Into::into).ok_or("no child".into())
}

fn at_a_terminal(setup: &Setup) -> Result<(), String> {
    let name = "attached-tty";
    let script =
        "tty; while read line; do stty size; echo got $line; [ $line = end ] && exit 6; done";
    start(setup, &["-it", "--name", name], script)?;
    wait_for_log(name, "/dev/")?;
    let program = sietch().get_program().to_string_lossy().into_owned();
    let session =
        |keys: &'static str, until: &'static str| -> Result<(String, Option<i32>), String> {
            let line = format!("stty rows 33 cols 101; {program} attach {name}");
            let mut command = Command::new("timeout");
            command.args(["120", "script", "-qec", &line, "/dev/null"]);
            command.envs(
                sietch()
                    .get_envs()
                    .filter_map(|(key, value)| Some((key, value?))),
            );
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().map_err(|error| error.to_string())?;
            let mut stdout = child.stdout.take().ok_or("no output")?;
            type_in(&mut child, "hello\n")?;
            let mut seen = read_until(&mut stdout, "got hello")?;
            type_in(&mut child, keys)?;
            seen += &read_until(&mut stdout, until)?;
            let status = child.wait().map_err(|error| error.to_string())?;
            Ok((seen, status.code()))
        };
    let (seen, status) = session("\x10\x11", "Detached")?;
    if status != Some(0) || !seen.contains("33 101") {
        return Err(format!("{status:?}: {seen:?}"));
    }
    let (seen, status) = session("end\n", "got end")?;
    if status != Some(6) {
        return Err(format!("{status:?}: {seen:?}"));
    }
    expect(&["rm", name], 0, &[name])
}

fn affinity(pid: &str) -> Result<String, String> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed:"));
    line.map(|line| line.trim().into())
        .ok_or("no affinity".into())
}

fn updated(setup: &Setup) -> Result<(), String> {
    let name = "updated";
    let script = "echo ready; read line; exit 3";
    start(&setup.with_cpus("2"), &["-i", "--name", name], script)?;
    wait_for_log(name, "ready")?;
    let inspect = |template: &str| {
        let told = said(sietch().args(["inspect", "-f", template, name]), 0);
        told.map(|text| text.trim().to_string())
    };
    let pid = inspect("{{.State.Pid}}")?;
    let before = affinity(&pid)?;
    expect(&["update", "--cpus", "1", name], 0, &[name])?;
    let one = affinity(&pid)?;
    let ones: u32 = one
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(u32::count_ones)
        .sum();
    if ones != 1 {
        return Err(format!("{one} of {before}"));
    }
    expect(&["update", "--cpus", "2", name], 0, &[name])?;
    if affinity(&pid)? != before {
        return Err(format!("{} and not {before}", affinity(&pid)?));
    }
    expect(
        &["update", "--cpus", "3", name],
        125,
        &["has 2 virtual CPUs"],
    )?;
    expect(
        &["update", "-m", "1G", name],
        125,
        &["no balloon", "--balloon"],
    )?;
    expect(&["update", name], 125, &["changes nothing"])?;
    expect(&["update", "--restart", "on-failure:1", name], 0, &[name])?;
    // It stays so in a machine that is started anew.
    expect(&["restart", "-t", "0", name], 0, &[name])?;
    wait_for_log(name, "ready")?;
    // It ends with 3, is started once more, and ends with 3 again.
    for restarts in ["0", "1"] {
        wait_until(|| {
            Ok(inspect("{{.RestartCount}} {{.State.Status}}")? == format!("{restarts} running"))
        })?;
        let mut client = attach(&[name])?;
        type_in(&mut client, "go\n")?;
        let status = client.wait().map_err(|error| error.to_string())?;
        if status.code() != Some(3) {
            return Err(format!("start {restarts} ends with {status}"));
        }
    }
    wait_until(|| Ok(inspect("{{.State.Status}}")? == "exited"))?;
    expect(&["rm", name], 0, &[name])
}

/// Waits until it is so, and looks now and then.
pub(crate) fn wait_until(is_so: impl Fn() -> Result<bool, String>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err("it never becomes so".into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}
