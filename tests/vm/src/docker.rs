//! docker's words for a machine's life and its program's rights: restarts, health, stop signals, limits, names; and that no process is
//! left, however a machine ends.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{Setup, sietch};
use crate::lifecycle::said;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a machine whose program fails is started again as often as its policy says",
        started_again,
    ),
    (
        "rights, limits, names and settings of docker's flags are the program's",
        rights,
    ),
    (
        "a machine says whether it is well and ends by the signal that its program wants",
        health_and_signal,
    ),
    (
        "of a machine whose keeper or QEMU is killed no process is left",
        nothing_left,
    ),
    (
        "a machine that is always started again is stopped, restarted and removed while it runs and while it waits",
        always_again,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

fn expect(args: &[&str], words: &str) -> Result<(), String> {
    let said = said(sietch().args(args), 0)?;
    match said.contains(words) {
        true => Ok(()),
        false => Err(format!("{args:?} never says {words:?}: {said}")),
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(format!("in vain waited for: {what}"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn start(setup: &Setup, flags: &[&str], script: &str) -> Result<(), String> {
    let program = ["busybox", "sh", "-c", script];
    let line = [&["-d", "--net", "none"], flags, &program].concat();
    said(&mut setup.command(&line), 0).map(drop)
}

fn started_again(setup: &Setup) -> Result<(), String> {
    let name = "again";
    let flags = [
        "--name",
        name,
        "--restart",
        "on-failure:1",
        "--label",
        "a=b",
    ];
    start(setup, &flags, "echo turn; exit 3")?;
    expect(&["wait", name], "3\n")?;
    expect(
        &["inspect", "-f", "{{.RestartCount}} {{.State.Status}}", name],
        "1 exited",
    )?;
    expect(
        &["ps", "--filter", "label=a=b", "--filter", "exited=3", "-q"],
        name,
    )?;
    let log = said(sietch().args(["logs", "-t", name]), 0)?;
    let turns: Vec<&str> = log
        .lines()
        .filter(|line| line.trim_end().ends_with("turn"))
        .collect();
    if turns.len() != 2 || !turns.iter().all(|line| line.starts_with("20")) {
        return Err(format!("the log is {log:?}"));
    }
    let now = [
        "events",
        "--since",
        "10m",
        "--until",
        "0s",
        "--format",
        "{{.Name}} {{.Action}}",
    ];
    let events = said(sietch().args(now), 0)?;
    let starts = events.lines().filter(|line| *line == "again start").count();
    if starts != 2 {
        return Err(format!("the events are {events:?}"));
    }
    expect(&["rename", name, "again-2"], "again-2")?;
    expect(&["rm", "again-2"], "again-2")
}

fn rights(setup: &Setup) -> Result<(), String> {
    let file = std::env::temp_dir().join(format!("sietch-docker-{}", std::process::id()));
    fs::write(&file, "of the host\n").map_err(|error| error.to_string())?;
    let single = format!("{}:/etc/of-the-host:ro", file.display());
    let flags = [
        "--net",
        "none",
        "--hostname",
        "web",
        "--domainname",
        "here",
        "--cap-drop",
        "ALL",
        "--cap-add",
        "CHOWN",
        "--ulimit",
        "nofile=100:200",
        "--group-add",
        "50",
        "--umask",
        "0027",
        "--sysctl",
        "net.core.somaxconn=77",
        "--security-opt",
        "no-new-privileges",
        "--add-host",
        "db:10.0.0.9",
        "--env-file",
        "/dev/null",
        "-e",
        "A=b",
        "-v",
        &single,
    ];
    let script = "hostname; cat /proc/sys/kernel/domainname /etc/of-the-host /proc/sys/net/core/somaxconn; \
        umask; ulimit -n; id -G; grep -e CapBnd -e NoNewPrivs /proc/self/status; grep db /etc/hosts; echo $A";
    let program = ["busybox", "sh", "-c", script];
    let told = said(&mut setup.command(&[&flags[..], &program].concat()), 0);
    let _ = fs::remove_file(&file);
    let told = told?;
    let told: Vec<String> = told.split_whitespace().map(ToString::to_string).collect();
    let wanted = "web here of the host 77 0027 100 0 50 CapBnd: 0000000000000001 NoNewPrivs: 1 10.0.0.9 db b";
    match told.join(" ").contains(wanted) {
        true => Ok(()),
        false => Err(format!("the program sees {:?}", told.join(" "))),
    }
}

fn health_and_signal(setup: &Setup) -> Result<(), String> {
    let name = "well";
    let flags = [
        "--name",
        name,
        "--stop-signal",
        "QUIT",
        "--health-cmd",
        r#"["busybox","test","-e","/tmp/well"]"#,
        "--health-interval",
        "300ms",
        "--health-retries",
        "1",
        "--health-timeout",
        "30s",
    ];
    start(
        setup,
        &flags,
        "trap 'echo bye; exit 9' QUIT; while :; do sleep 1; done",
    )?;
    let is = |wanted: &str| {
        let told = said(
            sietch().args(["inspect", "-f", "{{.State.Health.Status}}", name]),
            0,
        )?;
        Ok(told.trim() == wanted)
    };
    wait_until("unhealthy", || is("unhealthy"))?;
    said(
        sietch().args(["exec", name, "busybox", "touch", "/tmp/well"]),
        0,
    )?;
    wait_until("healthy", || is("healthy"))?;
    expect(&["ps"], "(healthy)")?;
    expect(
        &["stats", "--no-stream", "--format", "{{.Name}}", name],
        name,
    )?;
    expect(&["stop", name], name)?;
    expect(&["wait", name], "9\n")?;
    expect(&["logs", name], "bye")?;
    expect(&["rm", name], name)
}

fn nothing_left(setup: &Setup) -> Result<(), String> {
    for victim in ["conmon-pidfile", "pidfile"] {
        let name = format!("left-by-{victim}");
        let file =
            |what: &str| std::env::temp_dir().join(format!("sietch-{what}-{}", std::process::id()));
        let numbers = ["conmon-pidfile", "pidfile"].map(file);
        let [keeper, qemu] = numbers.clone().map(|path| path.display().to_string());
        let flags = [
            "--name",
            &name,
            "--restart",
            "no",
            "--conmon-pidfile",
            &keeper,
            "--pidfile",
            &qemu,
        ];
        start(setup, &flags, "sleep 1000")?;
        let number = |path: &Path| fs::read_to_string(path).map_err(|error| error.to_string());
        let pids = [number(&numbers[0])?, number(&numbers[1])?];
        let killed = number(&file(victim))?;
        said(Command::new("kill").args(["-9", &killed]), 0)?;
        wait_until("the end of both processes", || {
            Ok(pids
                .iter()
                .all(|pid| !Path::new("/proc").join(pid).exists()))
        })?;
        expect(
            &["ps", "-a", "--filter", &format!("name={name}")],
            "Exited (",
        )?;
        expect(&["rm", &name], &name)?;
        numbers.iter().for_each(|path| _ = fs::remove_file(path));
    }
    Ok(())
}

/// What each machine of a policy does: nothing until it is asked to end, or end at once.
const ENDS: [(&str, &str); 2] = [
    ("running", "trap 'exit 0' TERM; while :; do sleep 1; done"),
    ("restarting", "exit 3"),
];

fn always_again(setup: &Setup) -> Result<(), String> {
    for (state, script) in ENDS {
        // Of this process: keepers of all runs on this host are looked through.
        let name = format!("{state}-{}", std::process::id());
        start(setup, &["--name", &name, "--restart", "always"], script)?;
        for ended_before in [false, true] {
            wait_for_state(&name, state)?;
            if ended_before {
                expect(&["stop", &name], &name)?;
                wait_for_state(&name, "exited")?;
                wait_for_keepers(&name, 0)?;
            }
            expect(&["restart", &name], &name)?;
            // The former keeper goes: it does not start a second machine of this name.
            wait_for_keepers(&name, 1)?;
        }
        wait_for_state(&name, state)?;
        expect(&["rm", "-f", &name], &name)?;
        wait_for_keepers(&name, 0)?;
        said(sietch().args(["inspect", &name]), 125)?;
    }
    Ok(())
}

fn wait_for_state(name: &str, state: &str) -> Result<(), String> {
    let inspect = ["inspect", "-f", "{{.State.Status}}", name];
    wait_until(&format!("{name} to be {state}"), || {
        Ok(said(sietch().args(inspect), 0)?.trim() == state)
    })
}

fn wait_for_keepers(name: &str, count: usize) -> Result<(), String> {
    wait_until(&format!("{count} keepers of {name}"), || {
        Ok(keepers(name)? == count)
    })
}

/// How many processes keep a machine of this name.
fn keepers(name: &str) -> Result<usize, String> {
    let wanted = format!("SIETCH_DETACHED={name}");
    let is_keeper = |process: &Path| {
        // QEMU has the variable from its keeper. One that has just ended has no files.
        let is_sietch = fs::read(process.join("comm")).is_ok_and(|comm| comm == b"sietch\n");
        let variables = fs::read(process.join("environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        is_sietch && variables.any(|variable| variable == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").map_err(|error| error.to_string())?;
    let keepers = processes.flatten().filter(|entry| is_keeper(&entry.path()));
    Ok(keepers.count())
}
