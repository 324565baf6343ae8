//! A command that is killed before one of the system calls with which it changes something, by strace(1): for each of them the next
//! command finds all as before or all as after, and nothing is left.
//!
//! strace counts the calls of each name by themselves, so a command runs once unharmed to see which changes it makes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::image::Image;
use crate::scene::Scene;
use crate::{drafts_below, outcome, succeed};

/// System calls that change what others see.
const CHANGES: &str = "write,pwrite64,writev,ftruncate,rename,renameat2,link,linkat,unlink,unlinkat,rmdir,mkdir,\
mkdirat,fsync,fdatasync,flock,fchmod,chmod,fchmodat,copy_file_range,sendfile,clone3,clone,vfork,connect,bind";
const SIGKILL: i32 = 9;
/// Changes that a short test looks at: so many, spread over all, and the last one among them.
const SHORT_STEPS: usize = 8;

/// A call that changes something.
#[derive(Clone, Debug)]
struct Change {
    call: String,
    /// The first, the second and so on of its name.
    number: usize,
}

fn has_strace() -> bool {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "trace=none", "true"])
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// Runs `sietch` with these words under strace with those.
fn trace(scene: &Scene, words: &[&str], how: &[&str]) -> ExitStatus {
    let plain = scene.sietch(words);
    let mut command = Command::new("strace");
    command.arg("-qq").args(how);
    command.arg(plain.get_program()).args(plain.get_args());
    let variables = plain.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("strace starts")
}

/// Runs `sietch` with these words; what it changes, in its order.
fn changes_of(scene: &Scene, words: &[&str]) -> Vec<Change> {
    let record = scene.0.join("changes");
    let traced = format!("trace={CHANGES}");
    trace(
        scene,
        words,
        &["-o", &record.to_string_lossy(), "-e", &traced],
    );
    let record = fs::read(record).expect("a record");
    let record = String::from_utf8_lossy(&record);
    let mut changes: Vec<Change> = Vec::new();
    for line in record.lines() {
        let call = line.split('(').next().unwrap_or_default();
        if CHANGES.split(',').any(|name| name == call) {
            let before = changes.iter().filter(|change| change.call == call);
            let number = before.count() + 1;
            changes.push(Change {
                call: call.into(),
                number,
            });
        }
    }
    changes
}

/// Runs `sietch` with these words, and kills it before that change; whether it came so far.
fn is_killed_before(scene: &Scene, words: &[&str], change: &Change) -> bool {
    let Change { call, number } = change;
    let traced = format!("trace={call}");
    let killed = format!("inject={call}:signal=KILL:when={number}");
    let status = trace(
        scene,
        words,
        &["-o", "/dev/null", "-e", &traced, "-e", &killed],
    );
    status.signal() == Some(SIGKILL)
}

/// What runs a command in a scene, and lets it end or kills it.
pub(crate) type Attempt<'a> = &'a mut dyn FnMut(&Scene, &[&str]);

/// Tries a command unharmed, and then killed before each of its changes, or some if it `is_short`: each time `step` has a number, makes a
/// scene, makes the attempt there, and looks.
pub(crate) fn at_each_step(is_short: bool, step: impl Fn(usize, Attempt<'_>)) {
    if !has_strace() {
        eprintln!("SKIP: strace(1) is missing or may not trace here");
        return;
    }
    let mut changes = Vec::new();
    step(0, &mut |scene, words| changes = changes_of(scene, words));
    let count = changes.len();
    assert!(count > 2, "few changes: {changes:?}");
    let mut killed = 0;
    let steps: Vec<usize> = match is_short && count > SHORT_STEPS {
        true => (1..=SHORT_STEPS)
            .map(|part| part * count / SHORT_STEPS)
            .collect(),
        false => (1..=count).collect(),
    };
    for &number in &steps {
        let change = &changes[number - 1];
        step(number, &mut |scene, words| {
            killed += usize::from(is_killed_before(scene, words, change));
        });
    }
    // One that waits for another process may come by with fewer.
    assert!(
        2 * killed > steps.len(),
        "killed {killed} times of {steps:?}"
    );
}

/// A command, what is before it, and what is asked for after it was killed.
struct Trial<'a> {
    name: &'a str,
    before: &'a [&'a [&'a str]],
    words: &'a [&'a str],
    /// What a second try may be told, if the first one was done.
    done: &'a str,
    after: &'a [&'a [&'a str]],
}

const LAYOUT: &str = "oci:LAYOUT";

const TRIALS: [Trial<'_>; 8] = [
    Trial {
        name: "network-create",
        before: &[],
        words: &["network", "create", "back"],
        done: "There is a network back already.",
        after: &[&["network", "inspect", "back"], &["network", "rm", "back"]],
    },
    Trial {
        name: "network-rm",
        before: &[&["network", "create", "back"]],
        words: &["network", "rm", "back"],
        done: "There is no network back",
        after: &[&["network", "create", "back"]],
    },
    Trial {
        name: "volume-create",
        before: &[],
        words: &["volume", "create", "--size", "16M", "v"],
        done: "A volume called v is there already",
        after: &[&["volume", "fsck", "v"], &["volume", "rm", "v"]],
    },
    Trial {
        name: "volume-rm",
        before: &[&["volume", "create", "--size", "16M", "v"]],
        words: &["volume", "rm", "v"],
        done: "No volume is called v",
        after: &[&["volume", "create", "--size", "16M", "v"]],
    },
    Trial {
        name: "pull",
        before: &[],
        words: &["pull", LAYOUT],
        done: "",
        after: &[
            &["run", "--dry-run", "--accel", "tcg", "img"],
            &["rmi", "img"],
        ],
    },
    Trial {
        name: "rmi",
        before: &[
            &["pull", LAYOUT],
            &["run", "--dry-run", "--accel", "tcg", "img"],
        ],
        words: &["rmi", "img"],
        done: "There is no image img",
        after: &[&["pull", LAYOUT]],
    },
    Trial {
        name: "first-run",
        before: &[&["pull", LAYOUT]],
        words: &["run", "--dry-run", "--accel", "tcg", "img"],
        done: "",
        after: &[&["rmi", "img"]],
    },
    Trial {
        name: "build",
        before: &[],
        words: &["build", "-t", "mine", "true"],
        done: "",
        after: &[
            &["run", "--dry-run", "--accel", "tcg", "mine"],
            &["rmi", "mine"],
        ],
    },
];

impl Trial<'_> {
    fn step(&self, number: usize, attempt: Attempt<'_>) {
        let scene = Scene::new(&format!("faults-kill-{}-{number}", self.name));
        Image::new(2000).write(&scene.0.join("img"));
        let words = |words: &[&str]| with_layout(words, &scene.0.join("img"));
        let run = |line: &[&str]| {
            let line = words(line);
            scene.sietch(&line.iter().map(String::as_str).collect::<Vec<_>>())
        };
        for line in self.before {
            succeed(&mut run(line));
        }
        let line = words(self.words);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        attempt(&scene, &line);
        let what = format!("{} before change {number}", self.name);
        match outcome(&mut run(self.words)) {
            Ok(_) => {}
            Err(sentence) if !self.done.is_empty() && sentence.contains(self.done) => {}
            Err(sentence) => panic!("{what}: {sentence}"),
        }
        for line in self.after {
            let done = outcome(&mut run(line));
            done.unwrap_or_else(|sentence| panic!("{what}, {line:?}: {sentence}"));
        }
        assert!(
            drafts_below(&scene.0).is_empty(),
            "{what}: {:?}",
            drafts_below(&scene.0)
        );
    }
}

fn with_layout(words: &[&str], layout: &Path) -> Vec<String> {
    let word = |word: &&str| word.replace("LAYOUT", &layout.to_string_lossy());
    words.iter().map(word).collect()
}

fn run_all(is_short: bool) {
    for trial in &TRIALS {
        at_each_step(is_short, |number, attempt| trial.step(number, attempt));
    }
}

#[test]
fn a_command_may_be_killed_before_what_it_changes() {
    run_all(true);
}

#[test]
#[ignore = "each step of each command takes minutes"]
fn a_command_may_be_killed_before_each_of_its_changes() {
    run_all(false);
}

#[test]
fn a_machines_start_may_be_cut_off_anywhere_and_its_name_is_free() {
    // The fake QEMU ends at once: what is looked at is all before that, and the end.
    let words = ["run", "--accel", "tcg", "--name", "m", "true"];
    let scene = Scene::new("faults-kill-run");
    at_each_step(true, |number, attempt| {
        attempt(&scene, &words);
        let again = scene.sietch(&words).output().expect("sietch starts");
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(
            !said.contains("name m") && !said.contains("called m"),
            "{number}: {said}"
        );
        assert!(drafts_below(&scene.0).is_empty());
    });
}
