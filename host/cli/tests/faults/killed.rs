//! A command that is killed before its n-th system call that changes something, by strace(1): for all n the next command
//! finds all as before or all as after, and nothing is left.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::image::Image;
use crate::scene::Scene;
use crate::{drafts_below, outcome, succeed};

/// System calls that change what others see.
const CHANGES: &str = "write,pwrite64,writev,ftruncate,rename,renameat2,link,linkat,unlink,unlinkat,rmdir,mkdir,\
mkdirat,fsync,fdatasync,flock,fchmod,chmod,fchmodat,copy_file_range,sendfile,clone3,clone,vfork,connect,bind";
const SIGKILL: i32 = 9;

/// Whether a process may be traced here.
pub(crate) fn has_strace() -> bool {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "trace=none", "true"])
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// Runs `sietch` with these words, and kills it before its `number`-th change; whether it came so far.
pub(crate) fn is_killed_at(scene: &Scene, words: &[&str], number: u32) -> bool {
    let plain = scene.sietch(words);
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={CHANGES}")]);
    command.arg("-e");
    command.arg(format!("inject={CHANGES}:signal=KILL:when={number}"));
    command.arg(plain.get_program()).args(plain.get_args());
    let variables = plain.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().expect("strace starts");
    status.signal() == Some(SIGKILL)
}

/// The steps that a short test looks at: the first ones, and then fewer and fewer.
pub(crate) fn is_step(number: u32, is_short: bool) -> bool {
    !is_short || number <= 4 || number.is_multiple_of(1 + number / 5)
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
    /// All steps, or some; how many there were.
    fn run(&self, is_short: bool) -> u32 {
        for number in 1.. {
            if is_step(number, is_short) && !self.step(number) {
                return number;
            }
        }
        0
    }

    /// Whether it came so far.
    fn step(&self, number: u32) -> bool {
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
        let is_killed = is_killed_at(&scene, &line, number);
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
        is_killed
    }
}

fn with_layout(words: &[&str], layout: &Path) -> Vec<String> {
    let word = |word: &&str| word.replace("LAYOUT", &layout.to_string_lossy());
    words.iter().map(word).collect()
}

fn run_all(is_short: bool) {
    if !has_strace() {
        eprintln!("SKIP: strace(1) is missing or may not trace here");
        return;
    }
    for trial in &TRIALS {
        let steps = trial.run(is_short);
        assert!(steps > 2, "{} has {steps} changes only", trial.name);
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
    if !has_strace() {
        eprintln!("SKIP: strace(1) is missing or may not trace here");
        return;
    }
    // The fake QEMU ends at once: what is looked at is all before that, and the end.
    let words = ["run", "--accel", "tcg", "--name", "m", "true"];
    let scene = Scene::new("faults-kill-run");
    for number in (1..).filter(|number| is_step(*number, true)) {
        let is_killed = is_killed_at(&scene, &words, number);
        let again = scene.sietch(&words).output().expect("sietch starts");
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(
            !said.contains("name m") && !said.contains("called m"),
            "{number}: {said}"
        );
        assert!(drafts_below(&scene.0).is_empty());
        if !is_killed {
            return;
        }
    }
}
