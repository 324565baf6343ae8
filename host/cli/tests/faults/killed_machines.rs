//! Commands about machines that run, each killed before its n-th change: the next one works, and no process is left behind.
//!
//! QEMU is a process that sleeps; where it has to answer (snapshots), the test does.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use qemu::{Accel, Board, Forwarder, Machine, Net, Nic, Origin, Stdio};
use serde_json::{Value, json};

use crate::another_boot::Process;
use crate::killed::at_each_step;
use crate::scene::Scene;
use crate::{drafts_below, outcome, succeed};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const RUN: &[&str] = &[
    "run", "-d", "--net", "none", "--accel", "tcg", "--name", "m", "true",
];
const COMPOSE: &str = "services:\n  \
    a: {network_mode: none, command: [\"true\"]}\n  \
    b: {network_mode: none, command: [\"true\"], depends_on: [a]}\n";

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(POLL);
    }
}

/// Processes that were started with the scene's folders: sessions, QEMUs, guards.
fn processes_of(scene: &Scene) -> Vec<String> {
    let place = format!("XDG_RUNTIME_DIR={}\0", scene.0.display());
    let all = fs::read_dir("/proc").expect("it is there").flatten();
    let lines = all.filter_map(|entry| {
        let text = |name: &str| {
            let bytes = fs::read(entry.path().join(name)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        text("environ").filter(|around| around.contains(&place))?;
        text("cmdline")
    });
    lines.collect()
}

/// Nothing of the scene is left that somebody began, and nobody is there.
fn check_end(scene: &Scene, what: &str) {
    assert!(drafts_below(&scene.0).is_empty(), "{what}");
    wait_until(&format!("{what}: a process is left"), || {
        processes_of(scene).is_empty()
    });
}

/// Kills a command at each step, or some, each time in a scene of its own; `before` makes what it needs, and `after` looks.
struct Trial<'a> {
    name: &'a str,
    words: &'a dyn Fn(&Scene) -> Vec<String>,
    before: &'a dyn Fn(&Scene),
    after: &'a dyn Fn(&Scene, &str),
}

impl Trial<'_> {
    fn run(&self, is_short: bool) {
        at_each_step(is_short, |number, attempt| {
            let scene = Scene::new(&format!("faults-kill-{}-{number}", self.name));
            scene.let_machines_run();
            (self.before)(&scene);
            let words = (self.words)(&scene);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            attempt(&scene, &words);
            let what = format!("{} before change {number}", self.name);
            (self.after)(&scene, &what);
            check_end(&scene, &what);
        });
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Ends the machine as a user would, and removes it.
fn end(scene: &Scene, what: &str) {
    match outcome(&mut scene.sietch(&["stop", "-t", "0", "m"])) {
        Ok(_) => {}
        Err(sentence) => assert!(
            sentence.contains("No machine is called m"),
            "{what}: {sentence}"
        ),
    }
    match outcome(&mut scene.sietch(&["rm", "-f", "m"])) {
        Ok(_) => {}
        Err(sentence) => assert!(
            sentence.contains("No machine is called m"),
            "{what}: {sentence}"
        ),
    }
}

fn start(is_short: bool) {
    let trial = Trial {
        name: "run-d",
        words: &|_| owned(RUN),
        before: &|_| (),
        after: &|scene, what| {
            end(scene, what);
            let again = outcome(&mut scene.sietch(RUN));
            again.unwrap_or_else(|sentence| panic!("{what}: {sentence}"));
            end(scene, what);
        },
    };
    trial.run(is_short);
}

fn stop(is_short: bool) {
    let trial = Trial {
        name: "stop",
        words: &|_| owned(&["stop", "-t", "0", "m"]),
        before: &|scene| drop(succeed(&mut scene.sietch(RUN))),
        after: &|scene, what| {
            end(scene, what);
            // Nobody's wish to stop it is left for the next one.
            let again = outcome(&mut scene.sietch(RUN));
            again.unwrap_or_else(|sentence| panic!("{what}: {sentence}"));
            assert!(succeed(&mut scene.sietch(&["ps"])).contains("m "), "{what}");
            end(scene, what);
        },
    };
    trial.run(is_short);
}

/// A line of `sietch compose` for the scene's file.
fn composed(scene: &Scene, words: &[&str]) -> Vec<String> {
    let file = scene.0.join("compose.yaml").to_string_lossy().into_owned();
    let first = ["compose", "-p", "p", "-f", &file];
    owned(&[&first[..], words].concat())
}

fn compose_up(is_short: bool) {
    let said = |scene: &Scene, words: &[&str], what: &str| {
        let line = composed(scene, words);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        outcome(&mut scene.sietch(&line))
            .unwrap_or_else(|sentence| panic!("{what}, {words:?}: {sentence}"))
    };
    let trial = Trial {
        name: "compose-up",
        words: &|scene| composed(scene, &["up", "-d"]),
        before: &|scene| fs::write(scene.0.join("compose.yaml"), COMPOSE).expect("a file"),
        after: &|scene, what| {
            said(scene, &["up", "-d"], what);
            let ps = said(scene, &["ps"], what);
            assert_eq!(ps.matches(" Up").count(), 2, "{what}: {ps}");
            said(scene, &["down"], what);
        },
    };
    trial.run(is_short);
}

/// A machine in the scene's folders that `sietch snapshot` takes for one that runs.
fn leave_machine(scene: &Scene, qemu: &Process) {
    let state = scene.0.join("sietch/m");
    let machine = Machine {
        kernel: scene.0.join("kernel"),
        initrd: "/i".into(),
        command_line: String::new(),
        board: Board::Q35,
        accel: Accel::Tcg,
        memory_mib: 16,
        has_balloon: false,
        cpus: 1,
        nodes: 1,
        has_iommu: false,
        is_card_for_program: false,
        nic: Nic::Virtio,
        mac: None,
        net: Net::None,
        further_switches: 0,
        forwards: Vec::new(),
        forwarder: Forwarder::Qemu,
        volumes: Vec::new(),
        disks: Vec::new(),
        stdio: Stdio::Ports,
        plugin: None,
        state: state.clone(),
        origin: Origin::Boot,
    };
    let settings = json!({
        "name": "m", "command": ["true"], "qemu_pid": qemu.0.id(), "session_pid": 0, "ports": [],
        "kernel": "/k", "memory_mib": 16, "started_s": 0,
    });
    fs::create_dir_all(&state).expect("a folder");
    let plan = json!([machine, ["Stream", "Stream", "Stream"]]);
    fs::write(state.join("machine.json"), plan.to_string()).expect("a file");
    fs::write(state.join("settings.json"), settings.to_string()).expect("a file");
}

/// Answers as QEMU does at a socket, one connection after the other; whether the machine stands.
fn answer_at(socket: &Path) -> Arc<AtomicBool> {
    fs::create_dir_all(socket.parent().expect("it has a folder")).expect("a folder");
    let _ = fs::remove_file(socket);
    let listener = UnixListener::bind(socket).expect("bound");
    let stands = Arc::new(AtomicBool::new(false));
    let noted = stands.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // One that was killed in the middle has no more to say.
            let _ = converse(&stream, &noted);
        }
    });
    stands
}

fn converse(mut stream: &UnixStream, stands: &AtomicBool) -> std::io::Result<()> {
    writeln!(stream, "{}", json!({"QMP": {}}))?;
    let reader = BufReader::new(stream.try_clone()?);
    for line in reader.lines() {
        let request: Value = serde_json::from_str(&line?)?;
        match request["execute"].as_str() {
            Some("stop") => stands.store(true, Ordering::SeqCst),
            Some("cont") => stands.store(false, Ordering::SeqCst),
            _ => {}
        }
        writeln!(stream, "{}", json!({"return": {"status": "completed"}}))?;
    }
    Ok(())
}

fn snapshot(is_short: bool) {
    let words = ["snapshot", "m", "warm"];
    at_each_step(is_short, |number, attempt| {
        let scene = Scene::new(&format!("faults-kill-snapshot-{number}"));
        let qemu = Process::called("qemu-of-m", &scene);
        leave_machine(&scene, &qemu);
        let state = scene.0.join("sietch/m");
        let stands = answer_at(&state.join("qmp.sock"));
        let template = || answer_at(&state.join("template/qmp.sock"));
        template();
        attempt(&scene, &words);
        let what = format!("snapshot before change {number}");
        wait_until(&format!("{what}: the machine stands"), || {
            !stands.load(Ordering::SeqCst)
        });
        // Its guard removes what is left of the template.
        wait_until(&format!("{what}: a guard is left"), || {
            processes_of(&scene).is_empty()
        });
        template();
        succeed(&mut scene.sietch(&words));
        assert!(!stands.load(Ordering::SeqCst), "{what}");
        assert!(drafts_below(&scene.0).is_empty(), "{what}");
        succeed(&mut scene.sietch(&["snapshots", "--rm", "warm"]));
    });
}

#[test]
fn a_start_in_the_background_may_be_killed_anywhere_and_its_machine_can_be_ended() {
    start(true);
}

#[test]
fn a_stop_may_be_killed_anywhere_and_the_next_one_ends_the_machine() {
    stop(true);
}

/// What is known of the machine.
fn inspected(scene: &Scene) -> Value {
    let told = succeed(&mut scene.sietch(&["inspect", "m"]));
    serde_json::from_str(&told).expect("JSON")
}

#[test]
fn a_stop_that_was_killed_before_it_asked_leaves_the_policy_as_it_was() {
    let scene = Scene::new("faults-kill-wish");
    scene.let_machines_run();
    let words = [&["run", "--restart", "always"], &RUN[1..]].concat();
    succeed(&mut scene.sietch(&words));
    // No process has that number.
    fs::write(scene.0.join("sietch/m/stop"), "4194999 gone\n").expect("a file");
    let told = inspected(&scene);
    let qemu = told[0]["state"]["pid"].to_string();
    let killed = Command::new("kill").args(["-9", &qemu]).status();
    assert!(killed.expect("kill starts").success(), "{told}");
    wait_until("it is started again", || {
        let told = inspected(&scene);
        told[0]["restart_count"] == 1 && told[0]["state"]["running"] == true
    });
    end(&scene, "a wish of nobody");
    check_end(&scene, "a wish of nobody");
}

#[test]
fn compose_up_may_be_killed_anywhere_and_the_next_one_has_all_run() {
    compose_up(true);
}

#[test]
fn a_snapshot_may_be_killed_anywhere_and_the_machine_goes_on() {
    snapshot(true);
}

#[test]
#[ignore = "each step of each command takes minutes"]
fn a_command_about_a_machine_may_be_killed_before_each_of_its_changes() {
    for at_all_steps in [start, stop, compose_up, snapshot] {
        at_all_steps(false);
    }
}
