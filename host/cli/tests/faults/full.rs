//! A host without room: a small file system, and a limit on the size of files (`ulimit -f`). Each command works or says
//! that there is no room; once there is, all of them work.

use std::path::Path;
use std::process::Command;

use crate::image::Image;
use crate::scene::Scene;
use crate::{drafts_below, outcome, succeed};

/// The last word is made the layout's.
const COMMANDS: [&[&str]; 7] = [
    &["network", "create", "back"],
    &["volume", "create", "--size", "16M", "v"],
    &["pull", "oci:LAYOUT"],
    &["run", "--dry-run", "--accel", "tcg", "oci:LAYOUT"],
    &["build", "-t", "mine", "true"],
    &["run", "--dry-run", "--accel", "tcg", "mine"],
    &["rmi", "mine"],
];

/// What may be said where there is no room.
const WORDS: [&str; 8] = [
    "There is no room",
    "has room for",
    "`ulimit -f unlimited`",
    "There is no image",
    "is neither",
    "free",
    "pull",
    "already",
];

fn with_layout(words: &[&str], layout: &Path) -> Vec<String> {
    let word = |word: &&str| word.replace("LAYOUT", &layout.to_string_lossy());
    words.iter().map(word).collect()
}

/// Runs all commands in `scene`, made by `limited`; each ends well or says why not.
fn run_limited(scene: &Scene, layout: &Path, what: &str, limited: impl Fn(Command) -> Command) {
    for words in COMMANDS {
        let line = with_layout(words, layout);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        if let Err(sentence) = outcome(&mut limited(scene.sietch(&line))) {
            let is_known = WORDS.iter().any(|word| sentence.contains(word));
            assert!(is_known, "{what}, {words:?}: {sentence}");
        }
    }
}

/// All of them work, or had worked before.
fn works(scene: &Scene, layout: &Path, what: &str) {
    for words in COMMANDS {
        let line = with_layout(words, layout);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        match outcome(&mut scene.sietch(&line)) {
            Ok(_) => {}
            Err(sentence) if sentence.contains("already") => {}
            Err(sentence) => panic!("{what}, and room again, {words:?}: {sentence}"),
        }
    }
    assert!(
        drafts_below(&scene.0).is_empty(),
        "{what}: {:?}",
        drafts_below(&scene.0)
    );
}

/// The same command with a limit on files.
fn with_limit(command: &Command, bytes: u64) -> Command {
    let mut limited = Command::new("prlimit");
    limited.arg(format!("--fsize={bytes}"));
    limited.arg(command.get_program()).args(command.get_args());
    let variables = command.get_envs();
    limited.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    limited
}

#[test]
fn a_limit_on_the_size_of_files_is_a_sentence_wherever_it_strikes() {
    for bytes in [0, 100, 5000, 200_000, 4 << 20, 17 << 20] {
        let scene = Scene::new(&format!("faults-limit-{bytes}"));
        let layout = scene.0.join("img");
        Image::new(300_000).write(&layout);
        let what = format!("files of {bytes} bytes");
        run_limited(&scene, &layout, &what, |command| {
            with_limit(&command, bytes)
        });
        works(&scene, &layout, &what);
    }
}

/// A small file system, unmounted when this is dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(folder: &Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder);
        let output = mount.output().expect("mount starts");
        output.status.success().then(|| Self(folder.into()))
    }

    fn grow(&self) {
        let mut mount = Command::new("mount");
        mount.args(["-o", "remount,size=200M"]).arg(&self.0);
        assert!(mount.status().expect("mount starts").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_a_sentence_at_each_stage_and_all_works_once_there_is_room() {
    for size in ["4k", "40k", "400k", "800k", "2M", "6M"] {
        let scene = Scene::new(&format!("faults-full-{size}"));
        let outside = Scene::new(&format!("faults-full-image-{size}"));
        Image::new(300_000).write(&outside.0.join("img"));
        let small = scene.0.join("sietch");
        std::fs::create_dir_all(&small).expect("a folder");
        let Some(mounted) = Mounted::new(&small, &format!("size={size}")) else {
            eprintln!("SKIP: only root can make a small file system");
            return;
        };
        let what = format!("a disk of {size}");
        run_limited(&scene, &outside.0.join("img"), &what, |command| command);
        // The start of a machine, whose folder is there too: it is lost, as the QEMU is none.
        let started = scene
            .sietch(&["run", "--accel", "tcg", "--name", "m", "true"])
            .output();
        let said = String::from_utf8(started.expect("sietch starts").stderr).expect("text");
        assert!(!said.contains("panicked"), "{said}");
        mounted.grow();
        works(&scene, &outside.0.join("img"), &what);
        succeed(&mut scene.sietch(&["ps", "-a"]));
    }
}

#[test]
fn a_machine_can_be_ended_where_there_is_no_room_to_write_that_down() {
    let run = [
        "run", "-d", "--net", "none", "--accel", "tcg", "--name", "m", "true",
    ];
    for end in [&["stop", "-t", "0", "m"][..], &["rm", "-f", "m"]] {
        let scene = Scene::new(&format!("faults-full-{}", end[0]));
        scene.let_machines_run();
        succeed(&mut scene.sietch(&run));
        succeed(&mut with_limit(&scene.sietch(end), 0));
        assert!(!succeed(&mut scene.sietch(&["ps"])).contains("\nm "));
    }
}
