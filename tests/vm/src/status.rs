//! How programs end, as the command tells it.

use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup, state_folder};

/// The tests.
pub const TESTS: &[Test] = &[
    ("the exit status of a program is passed on", exit_status),
    ("what a program writes arrives and nothing else", output),
    (
        "a program killed by a signal is reported with its name",
        killed,
    ),
    (
        "the first program outlives what other programs send it by accident",
        spared,
    ),
    ("a program ends when its machine is asked to", terminated),
    (
        "a program sees its environment and working folder",
        environment,
    ),
    (
        "a command that is killed takes its machine with it",
        killed_command,
    ),
    (
        "the flaws of the processor are told, and what is done about them can be switched",
        flaws,
    ),
];

fn shell(setup: &Setup, script: &str) -> Result<crate::guest::End, String> {
    setup
        .start(&["--net", "none", "busybox", "sh", "-c", script])?
        .wait(BOOT_PATIENCE)
}

fn exit_status(setup: &Setup) -> Result<(), String> {
    for status in [0, 1, 77, 255] {
        let end = shell(setup, &format!("exit {status}"))?;
        expect_status(&end, status)?;
    }
    Ok(())
}

fn output(setup: &Setup) -> Result<(), String> {
    let end = shell(setup, "echo out; echo err >&2")?;
    let said: Vec<&str> = end.console.lines().map(str::trim_end).collect();
    match said.as_slice() {
        ["out", "err"] => Ok(()),
        other => Err(format!("the console shows {other:?}")),
    }
}

fn killed(setup: &Setup) -> Result<(), String> {
    let end = shell(setup, "kill -SEGV $$")?;
    expect_status(&end, 128 + 11)?;
    match end.console.contains("busybox was killed by SIGSEGV") {
        true => Ok(()),
        false => Err(format!("the command said {:?}", end.console)),
    }
}

fn spared(setup: &Setup) -> Result<(), String> {
    let script =
        "sh -c 'kill -ALRM 0'; sh -c 'kill -KILL 1; kill -TERM $PPID; kill -STOP 1'; exit 5";
    expect_status(&shell(setup, script)?, 5)?;
    let script = "trap 'exit 6' ALRM; sh -c 'kill -ALRM 1'; sleep 10";
    expect_status(&shell(setup, script)?, 6)
}

fn terminated(setup: &Setup) -> Result<(), String> {
    let script = "trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 1; done";
    let guest = setup.start(&["--net", "none", "busybox", "sh", "-c", script])?;
    guest.expect("ready", BOOT_PATIENCE)?;
    let end = guest.stop()?;
    expect_status(&end, 9)
}

fn environment(setup: &Setup) -> Result<(), String> {
    let script = "echo $GREETING from $(pwd)";
    let args = [
        "--net",
        "none",
        "-e",
        "GREETING=hello",
        "-w",
        "/tmp",
        "busybox",
        "sh",
        "-c",
        script,
    ];
    let guest = setup.start(&args)?;
    guest.expect("hello from /tmp", BOOT_PATIENCE)?;
    let end = guest.wait(Duration::from_secs(20))?;
    expect_status(&end, 0)
}

/// Fails with the command's words if the status is another.
pub fn expect_status(end: &crate::guest::End, status: i32) -> Result<(), String> {
    match end.status == status {
        true => Ok(()),
        false => Err(format!(
            "the status is {} and not {status}: {}",
            end.status,
            end.console.trim(),
        )),
    }
}

/// Nothing of the command runs any more that could stop QEMU.
fn killed_command(setup: &Setup) -> Result<(), String> {
    let script = "echo ready; while :; do sleep 1; done";
    let name = "killed-command";
    let args = [
        "--net", "none", "--name", name, "busybox", "sh", "-c", script,
    ];
    let mut guest = setup.start(&args)?;
    guest.expect("ready", BOOT_PATIENCE)?;
    let socket = state_folder().join("sietch").join(name).join("qmp.sock");
    UnixStream::connect(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
    guest.kill()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while UnixStream::connect(&socket).is_ok() {
        if Instant::now() > deadline {
            return Err("QEMU runs on".into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Each file has a sentence; with either switch programs come and go as ever.
fn flaws(setup: &Setup) -> Result<(), String> {
    let script = "cd /sys/devices/system/cpu/vulnerabilities; [ $(ls | wc -l) -ge 16 ]; echo $?; \
                  grep -c -E '^(Not affected|Vulnerable|Mitigation|Unknown|KVM|Processor)' -r . | grep -vc :1; \
                  cat spectre_v2; (exit 3); echo children end with $?";
    for switch in ["mitigations=auto", "mitigations=off", "mds=full"] {
        let args = [
            "--net",
            "none",
            "--kernel-option",
            switch,
            "busybox",
            "sh",
            "-c",
            script,
        ];
        let end = setup.start(&args)?.wait(BOOT_PATIENCE)?;
        let said: Vec<&str> = end.console.lines().map(str::trim_end).collect();
        let off = switch == "mitigations=off";
        match said[..] {
            ["0", "0", second, "children end with 3"]
                if !off || second.starts_with("Vulnerable; IBPB: disabled") => {}
            _ => return Err(format!("{switch}: it says {said:?}")),
        }
    }
    Ok(())
}

/// Whether all of it was said.
pub fn expect_all(said: &str, wanted: &[&str]) -> Result<(), String> {
    match wanted.iter().find(|wanted| !said.contains(**wanted)) {
        None => Ok(()),
        Some(missing) => Err(format!("never wrote `{missing}` but:\n{said}")),
    }
}
