//! Commands that enter a machine that runs (`sietch exec`, `sietch kill`).

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch};
use crate::redis::{benchmark, start};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a command in a machine has input, output, status, folder, user and environment of its own",
        pipes,
    ),
    (
        "a command in a machine has a terminal with the window of the user's",
        terminal,
    ),
    (
        "a command whose output nobody reads stops no other one",
        unread,
    ),
    (
        "a command goes on or is hung up when its client is gone, and ends with its machine",
        vanished,
    ),
    (
        "commands come and go under a loaded Redis, which loses no request, and leave nothing behind",
        under_load,
    ),
];

const BUSYBOX: [&str; 2] = ["--add", "/bin/busybox:/bin/busybox"];
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Commands at once under load.
const AT_ONCE: usize = 20;
/// Free memory that caches of CPUs may keep.
const KIB_MAX: i64 = 1024;
/// What the allocator of the command may keep.
const COMMAND_KIB_MAX: i64 = 8 * 1024;

/// A machine with a shell that waits, and ends with 9 when it is asked to.
fn machine(setup: &Setup, name: &str) -> Result<Guest, String> {
    let script =
        "trap 'exit 9' TERM; trap 'echo heard' USR1; echo ready; while :; do sleep 1; done";
    let flags = [
        "--net",
        "none",
        "--name",
        name,
        "-e",
        "GREETING=hello",
        "-w",
        "/tmp",
    ];
    let guest = setup.start(&[&flags[..], &["busybox", "sh", "-c", script]].concat())?;
    guest.expect("ready", BOOT_PATIENCE)?;
    Ok(guest)
}

/// `sietch exec` as it is, for what is to be killed.
fn client(args: &[&str]) -> Command {
    let mut command = sietch();
    command.arg("exec").args(args).stdin(Stdio::null());
    command
}

/// The same, but not for ever.
fn exec(args: &[&str]) -> Command {
    bounded(
        &[
            &[sietch().get_program().to_string_lossy().as_ref(), "exec"],
            args,
        ]
        .concat(),
    )
}

fn bounded(line: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("60").args(line).stdin(Stdio::null());
    for (key, value) in sietch().get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    command
}

fn run(args: &[&str]) -> Result<Output, String> {
    exec(args).output().map_err(|error| error.to_string())
}

/// Fails unless the command has that status and says that on its two outputs.
fn expect(args: &[&str], status: i32, stdout: &str, stderr: &str) -> Result<(), String> {
    let output = run(args)?;
    let said = (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    let has_said = said.2.contains(stderr) && said.2.is_empty() == stderr.is_empty();
    match said.0 == Some(status) && said.1 == stdout && has_said {
        true => Ok(()),
        false => Err(format!(
            "{args:?}: {said:?} and not {status}, {stdout:?}, {stderr:?}"
        )),
    }
}

/// What a shell in the machine says to `script`.
fn ask(name: &str, script: &str) -> Result<String, String> {
    let output = run(&[name, "busybox", "sh", "-c", script])?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        false => Err(format!("{script}: {output:?}")),
    }
}

fn pipes(setup: &Setup) -> Result<(), String> {
    let name = "entered";
    let guest = machine(setup, name)?;
    let sh = |script: &'static str| [name, "busybox", "sh", "-c", script];
    expect(&sh("echo out; echo err >&2; exit 7"), 7, "out\n", "err\n")?;
    expect(
        &sh("echo $GREETING $(pwd) $(id -u); cat"),
        0,
        "hello /tmp 0\n",
        "",
    )?;
    let flags = ["-w", "/", "-u", "5:6", "-e", "GREETING=bye"];
    let script = "echo $GREETING $(pwd) $(id -u) $(id -g)";
    expect(&[&flags[..], &sh(script)].concat(), 0, "bye / 5 6\n", "")?;
    // It leads its session, has no parent, and process 1 no child of it.
    let script = "set -- $(cat /proc/$$/stat); echo $4 $(( $5 == $1 )) $(( $6 == $1 ))";
    expect(&sh(script), 0, "0 1 1\n", "")?;
    expect(&sh("kill -KILL $$"), 137, "", "")?;
    expect(
        &[name, "nothing-such"],
        127,
        "",
        "has no program nothing-such",
    )?;
    expect(&[name, "/tmp"], 126, "", "cannot be executed")?;
    expect(
        &["-w", "/nowhere", name, "busybox"],
        127,
        "",
        "no folder /nowhere",
    )?;
    expect(
        &["no-machine", "busybox"],
        125,
        "",
        "No machine is called no-machine",
    )?;
    expect(
        &["-d", name, "nothing-such"],
        127,
        "",
        "has no program nothing-such",
    )?;
    expect(&["-d", name, "busybox", "touch", "/tmp/made"], 0, "", "")?;
    ask(name, "until [ -e /tmp/made ]; do sleep 0.1; done")?;
    echo_input(name)?;
    let killed = sietch().args(["kill", "-s", "USR1", name]).output();
    killed.map_err(|error| error.to_string())?;
    guest.expect("heard", PATIENCE)?;
    expect_status(&guest.stop()?, 9)
}

/// More than all windows and buffers hold goes in and comes out.
fn echo_input(name: &str) -> Result<(), String> {
    let sent: Vec<u8> = (0..500_000_u32).map(|at| (at / 7) as u8).collect();
    let mut command = exec(&["-i", name, "busybox", "cat"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    let input = sent.clone();
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let has_written = writer.join().is_ok_and(|written| written.is_ok());
    match has_written && output.status.success() && output.stdout == sent {
        true => Ok(()),
        false => Err(format!(
            "of {} bytes {} came back",
            sent.len(),
            output.stdout.len()
        )),
    }
}

fn terminal(setup: &Setup) -> Result<(), String> {
    let name = "entered-tty";
    let guest = machine(setup, name)?;
    let program = sietch().get_program().to_string_lossy().into_owned();
    let inner = "stty size; tty; read line; echo got $line; exit 5";
    let line = format!("stty rows 33 cols 101; {program} exec -it {name} busybox sh -c '{inner}'");
    let mut command = bounded(&["script", "-qec", &line, "/dev/null"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    let mut stdout = child.stdout.take().ok_or("no output")?;
    let mut seen = Vec::new();
    let mut buffer = [0; 256];
    while !String::from_utf8_lossy(&seen).contains("/dev/pts/") {
        match stdout.read(&mut buffer) {
            Ok(len @ 1..) => seen.extend(&buffer[..len]),
            _ => break,
        }
    }
    stdin
        .write_all(b"words\n")
        .map_err(|error| error.to_string())?;
    let _ = stdout.read_to_end(&mut seen);
    let status = child.wait().map_err(|error| error.to_string())?;
    let seen = String::from_utf8_lossy(&seen).into_owned();
    let is_right =
        seen.contains("33 101") && seen.contains("/dev/pts/0") && seen.contains("got words");
    if !is_right || status.code() != Some(5) {
        return Err(format!("{status}: {seen:?}"));
    }
    expect(&["-it", name, "busybox"], 125, "", "is no terminal")?;
    expect_status(&guest.stop()?, 9)
}

fn unread(setup: &Setup) -> Result<(), String> {
    let name = "entered-unread";
    let guest = machine(setup, name)?;
    let mut command = client(&[name, "busybox", "yes"]);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let mut first = [0; 2];
    let stdout = child.stdout.as_mut().ok_or("no output")?;
    stdout
        .read_exact(&mut first)
        .map_err(|error| error.to_string())?;
    for _ in 0..3 {
        expect(&[name, "busybox", "echo", "here"], 0, "here\n", "")?;
    }
    let ended = child.kill().and_then(|()| child.wait());
    ended.map_err(|error| error.to_string())?;
    expect_status(&guest.stop()?, 9)
}

fn vanished(setup: &Setup) -> Result<(), String> {
    let name = "entered-vanished";
    let mut guest = machine(setup, name)?;
    // Its output is dropped, its input ends, and it goes on.
    let script = "yes | head -c 300000; cat; touch /tmp/went-on";
    let mut child = client(&["-i", name, "busybox", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut first = [0; 2];
    let stdout = child.stdout.as_mut().ok_or("no output")?;
    stdout
        .read_exact(&mut first)
        .map_err(|error| error.to_string())?;
    let killed = child.kill().and_then(|()| child.wait());
    killed.map_err(|error| error.to_string())?;
    ask(name, "until [ -e /tmp/went-on ]; do sleep 0.1; done")?;
    let child = exec(&[name, "busybox", "sleep", "1000"])
        .stderr(Stdio::piped())
        .spawn();
    let child = child.map_err(|error| error.to_string())?;
    ask(
        name,
        "until grep -q sleep /proc/[0-9]*/comm; do sleep 0.1; done",
    )?;
    guest.kill()?;
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() == Some(137) && said.contains("has ended, and the command with it") {
        true => Ok(()),
        false => Err(format!("{}: {said:?}", output.status)),
    }
}

/// Open files, processes, and free memory in KiB.
fn counts(name: &str) -> Result<(i64, i64, i64), String> {
    let script =
        "cat /proc/sys/fs/file-nr; ls /proc | grep -c '^[0-9]*$'; grep MemFree /proc/meminfo";
    let said = ask(name, script)?;
    let mut words = said.split_whitespace();
    let mut number = |at: usize| words.nth(at).and_then(|word| word.parse::<i64>().ok());
    let counts = (number(0), number(2), number(1));
    match counts {
        (Some(files), Some(processes), Some(free)) => Ok((files, processes, free)),
        _ => Err(format!("{said:?}")),
    }
}

/// Threads, open files, and resident memory in KiB of the process that serves the machine.
fn counts_of_command(guest: &Guest) -> Result<(i64, i64, i64), String> {
    let folder = format!("/proc/{}", guest.pid());
    let read = || {
        let status = std::fs::read_to_string(format!("{folder}/status"))?;
        let files = std::fs::read_dir(format!("{folder}/fd"))?.count();
        Ok::<_, std::io::Error>((status, files as i64))
    };
    let (status, files) = read().map_err(|error| error.to_string())?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok())
    };
    let found = field("Threads:").zip(field("VmRSS:"));
    let (threads, resident) = found.ok_or_else(|| status.clone())?;
    Ok((threads, files, resident))
}

/// So many commands, [`AT_ONCE`] at a time.
fn many(name: &'static str, count: usize) -> Result<(), String> {
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            thread::spawn(move || -> Result<(), String> {
                for _ in 0..count / AT_ONCE {
                    expect(
                        &[name, "busybox", "sh", "-c", "echo a; exit 3"],
                        3,
                        "a\n",
                        "",
                    )?;
                }
                Ok(())
            })
        })
        .collect();
    let join = |worker: thread::JoinHandle<_>| worker.join().map_err(|_| "a worker panicked")?;
    workers.into_iter().try_for_each(join)
}

fn under_load(setup: &Setup) -> Result<(), String> {
    let name = "entered-redis";
    let flags = [&["--name", name], &BUSYBOX[..]].concat();
    let (guest, address) = start(setup, &flags, &["--save", ""])?;
    let count = if setup.is_long() { 1000 } else { 100 };
    // What caches keep is there already when it counts.
    many(name, 2 * AT_ONCE)?;
    let before = counts(name)?;
    let command_before = counts_of_command(&guest)?;
    let requests = (count * 100).to_string();
    let commands = thread::spawn(move || many(name, count));
    benchmark(
        &guest,
        address,
        &["-n", &requests, "-c", "10", "-t", "set,get"],
    )?;
    commands.join().map_err(|_| "the commands panicked")??;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (after, command_after) = (counts(name)?, counts_of_command(&guest)?);
        let is_clean = after.0 <= before.0 && after.1 <= before.1 && before.2 - after.2 <= KIB_MAX;
        let is_command_clean = command_after.0 <= command_before.0
            && command_after.1 <= command_before.1
            && command_after.2 - command_before.2 <= COMMAND_KIB_MAX;
        if is_clean && is_command_clean {
            break;
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{before:?} before, {after:?} after: files, processes, free KiB; of the command {command_before:?}, \
                 {command_after:?}: threads, files, resident KiB"
            ));
        }
        thread::sleep(POLL);
    }
    expect_status(&guest.stop()?, 0)
}
