//! Machines that belong together, of a compose file (`sietch compose`).

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{Setup, sietch, write_file};

/// The test, for which one CPU more or less changes nothing.
pub const TESTS_ONCE: &[Test] = &[(
    "machines of a compose file start in order, find each other, stay as they are and go",
    comes_and_goes,
)];

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
    stop_grace_period: 1s
    healthcheck:
      test: ["CMD", "busybox", "wget", "-q", "-O", "-", "http://127.0.0.1/ready"]
      interval: 1s
      retries: 60
  last:
    command: busybox echo all is done
    depends_on:
      asks: {condition: service_completed_successfully}
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
    let outcome = compose(&["up", "-d"]).and_then(|_| runs(&compose));
    let log = compose(&["logs"])?;
    compose(&["down"])?;
    outcome.map_err(|error| format!("{error}\n{log}"))?;
    let left = compose(&["ps"])?;
    let networks = said(sietch().args(["network", "ls"]))?;
    match left.contains("Up") || left.contains("Exited") || networks.contains("shop_default") {
        false => Ok(()),
        true => Err(format!("something is left: {left}{networks}")),
    }
}

fn runs(compose: &impl Fn(&[&str]) -> Result<String, String>) -> Result<(), String> {
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
    match pid(&before) == pid(&after) && pid(&before).is_some() {
        true => Ok(()),
        false => Err("what ran was started again".into()),
    }
}
