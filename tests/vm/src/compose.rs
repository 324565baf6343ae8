//! Machines that belong together, of a compose file (`sietch compose`).

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch, write_file};
use crate::status::{expect_all, expect_status};

/// The tests, for which one CPU more or less changes nothing.
pub const TESTS_ONCE: &[Test] = &[
    (
        "machines of a compose file start in order, find each other, stay as they are and go",
        comes_and_goes,
    ),
    (
        "Ctrl-C ends the machines of a compose file in order, and once more at once",
        is_interrupted,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
const FILE: &str = r#"
services:
  asks:
    command: busybox wget -q -O - http://${HOST_TO_ASK:-store}/ready
    depends_on:
      web: {condition: service_healthy}
  web:
    command: ["busybox", "sh", "-c", "sleep 1; echo hello > /tmp/ready; httpd -f -p 80 -h /tmp"]
    networks:
      default: {aliases: [store]}
    volumes: ["kept:/kept"]
    labels: {turn: "${TURN:-first}"}
    stop_grace_period: 1s
    healthcheck:
      test: ["CMD", "busybox", "wget", "-q", "-O", "-", "http://127.0.0.1/ready"]
      interval: 1s
      retries: 60
  last:
    command: busybox echo all is done
    depends_on:
      asks: {condition: service_completed_successfully}
  rest:
    command: busybox sleep 1000
    stop_grace_period: 1s
volumes:
  kept: {}
"#;

/// What a command says; it must succeed.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("{command:?}: {said}")),
    }
}

fn comes_and_goes(_: &Setup) -> Result<(), String> {
    let file = write_file("shop/compose.yaml", FILE)?;
    let compose = |words: &[&str]| said(sietch().args([&["compose", "-f", &file], words].concat()));
    let outcome = compose(&["up", "-d"]).and_then(|_| runs(&file, &compose));
    let log = compose(&["logs"])?;
    compose(&["down", "-v"])?;
    outcome.map_err(|error| format!("{error}\n{log}"))?;
    let left = compose(&["ps"])?;
    let networks = said(sietch().args(["network", "ls"]))?;
    match left.contains("Up") || left.contains("Exited") || networks.contains("shop_default") {
        false => Ok(()),
        true => Err(format!("something is left: {left}{networks}")),
    }
}

fn runs(file: &str, compose: &impl Fn(&[&str]) -> Result<String, String>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (log, machines) = (compose(&["logs"])?, compose(&["ps"])?);
        let has_said = ["asks | hello", "last | all is done"]
            .iter()
            .all(|line| log.contains(line));
        if has_said && machines.matches("Exited (0)").count() == 2 {
            break;
        }
        if Instant::now() > deadline {
            return Err(format!("not all is done: {machines}"));
        }
        thread::sleep(POLL);
    }
    let before = said(sietch().args(["inspect", "shop-web"]))?;
    compose(&["up", "-d"])?;
    let after = said(sietch().args(["inspect", "shop-web"]))?;
    let pid = |text: &str| {
        text.lines()
            .find(|line| line.contains("\"pid\""))
            .map(str::to_string)
    };
    if pid(&before) != pid(&after) || pid(&before).is_none() {
        return Err("what ran was started again".into());
    }
    // Another line: it is replaced, and has its volume, while others keep the network.
    said(
        sietch()
            .args(["compose", "-f", file, "up", "-d"])
            .env("TURN", "second"),
    )?;
    let replaced = said(sietch().args(["inspect", "shop-web"]))?;
    match replaced.contains("second") && pid(&replaced) != pid(&after) {
        true => Ok(()),
        false => Err(format!("it was not replaced: {replaced}")),
    }
}

/// One does as it is asked, one has ten minutes and does not.
const DEAF: &str = r#"
services:
  deaf:
    command: ["busybox", "sh", "-c", "trap '' TERM; echo is up; while :; do sleep 1; done"]
    network_mode: none
    stop_grace_period: 10m
  polite:
    command: ["busybox", "sh", "-c", "trap 'echo goes; exit' TERM; echo is up; while :; do sleep 1; done"]
    network_mode: none
    depends_on: [deaf]
"#;

fn is_interrupted(_: &Setup) -> Result<(), String> {
    let file = write_file("talk/compose.yaml", DEAF)?;
    let compose = |words: &[&str]| {
        let mut command = sietch();
        command.args([&["compose", "-f", &file], words].concat());
        command
    };
    let guest = Guest::of(compose(&["up"]))?;
    let press = || {
        let pid = i32::try_from(guest.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or("no process")?, Signal::INT).map_err(|error| error.to_string())
    };
    for line in ["deaf   | is up", "polite | is up"] {
        guest.expect(line, BOOT_PATIENCE)?;
    }
    press()?;
    // What is written meanwhile is shown, and who was depended on is asked last.
    for line in ["polite | goes", "talk-deaf stops"] {
        guest.expect(line, PATIENCE)?;
    }
    press()?;
    let end = guest.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    let machines = said(&mut compose(&["ps"]))?;
    let outcome = expect_all(&machines, &["Exited (0)", "Exited (137)"]);
    said(&mut compose(&["down"]))?;
    outcome
}
