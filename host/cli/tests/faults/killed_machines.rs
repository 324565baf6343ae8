//! Commands about machines that run, each killed before its n-th change: the next one works, and no process is left behind.
//!
//! QEMU is a process that sleeps; where it has to answer (snapshots), the test does.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use qemu::{Accel, Board, Forwarder, Machine, Net, Nic, Origin, Stdio};
use serde_json::{Value, json};

use crate::another_boot::Process;
use crate::killed::{has_strace, is_killed_at, is_step};
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

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
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

/// Kills a command at some steps, each in a scene of its own; `before` makes what it needs, and `after` looks.
fn at_each_step(
    name: &str,
    words: impl Fn(&Scene) -> Vec<String>,
    before: impl Fn(&Scene),
    after: impl Fn(&Scene, &str),
) {
    if !has_strace() {
        eprintln!("SKIP: strace(1) is missing or may not trace here");
        return;
    }
    for number in (1..).filter(|number| is_step(*number, true)) {
        let scene = Scene::new(&format!("faults-kill-{name}-{number}"));
        scene.let_machines_run();
        before(&scene);
        let words = words(&scene);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_killed = is_killed_at(&scene, &words, number);
        let what = format!("{name} before change {number}");
        after(&scene, &what);
        check_end(&scene, &what);
        if !is_killed {
            assert!(number > 2, "{name} has {number} changes only");
            return;
        }
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

#[test]
fn a_start_in_the_background_may_be_killed_anywhere_and_its_machine_can_be_ended() {
    at_each_step(
        "run-d",
        |_| owned(RUN),
        |_| (),
        |scene, what| {
            end(scene, what);
            let again = outcome(&mut scene.sietch(RUN));
            again.unwrap_or_else(|sentence| panic!("{what}: {sentence}"));
            end(scene, what);
        },
    );
}

#[test]
fn a_stop_may_be_killed_anywhere_and_the_next_one_ends_the_machine() {
    at_each_step(
        "stop",
        |_| owned(&["stop", "-t", "0", "m"]),
        |scene| drop(succeed(&mut scene.sietch(RUN))),
        |scene, what| {
            end(scene, what);
            // Nobody's wish to stop it is left for the next one.
            let again = outcome(&mut scene.sietch(RUN));
            again.unwrap_or_else(|sentence| panic!("{what}: {sentence}"));
            assert!(succeed(&mut scene.sietch(&["ps"])).contains("m "), "{what}");
            end(scene, what);
        },
    );
}

#[test]
fn compose_up_may_be_killed_anywhere_and_the_next_one_has_all_run() {
    let compose = |scene: &Scene, words: &[&str]| {
        let file = scene.0.join("compose.yaml").to_string_lossy().into_owned();
        let first = ["compose", "-p", "p", "-f", &file];
        owned(&[&first[..], words].concat())
    };
    let said = |scene: &Scene, words: &[&str], what: &str| {
        let line = compose(scene, words);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        outcome(&mut scene.sietch(&line))
            .unwrap_or_else(|sentence| panic!("{what}, {words:?}: {sentence}"))
    };
    at_each_step(
        "compose-up",
        |scene| compose(scene, &["up", "-d"]),
        |scene| fs::write(scene.0.join("compose.yaml"), COMPOSE).expect("a file"),
        |scene, what| {
            said(scene, &["up", "-d"], what);
            let ps = said(scene, &["ps"], what);
            assert_eq!(ps.matches(" Up").count(), 2, "{what}: {ps}");
            said(scene, &["down"], what);
        },
    );
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

#[test]
fn a_snapshot_may_be_killed_anywhere_and_the_machine_goes_on() {
    if !has_strace() {
        eprintln!("SKIP: strace(1) is missing or may not trace here");
        return;
    }
    let words = ["snapshot", "m", "warm"];
    for number in (1..).filter(|number| is_step(*number, true)) {
        let scene = Scene::new(&format!("faults-kill-snapshot-{number}"));
        let qemu = Process::called("qemu-of-m", &scene);
        leave_machine(&scene, &qemu);
        let state = scene.0.join("sietch/m");
        let stands = answer_at(&state.join("qmp.sock"));
        let template = || answer_at(&state.join("template/qmp.sock"));
        template();
        let is_killed = is_killed_at(&scene, &words, number);
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
        if !is_killed {
            assert!(number > 2, "a snapshot has {number} changes only");
            return;
        }
    }
}
