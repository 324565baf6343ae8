//! Files of ours that the host's disk has damaged: the next commands work, or say what to do, and that helps.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::image::Image;
use crate::scene::Scene;
use crate::{outcome, succeed};

/// What befalls a file.
const DAMAGES: [&str; 7] = [
    "cut off",
    "emptied",
    "flipped",
    "removed",
    "a folder",
    "unreadable",
    "garbage",
];

fn damage(file: &Path, how: &str) {
    let mut bytes = fs::read(file).expect("it is there");
    match how {
        "cut off" => bytes.truncate(bytes.len() / 2),
        "emptied" => bytes.clear(),
        "flipped" => {
            let middle = bytes.len() / 2;
            // There is nothing in the lock's file.
            bytes
                .iter_mut()
                .skip(middle)
                .take(1)
                .for_each(|byte| *byte ^= 0x10);
        }
        "garbage" => bytes.fill(b'#'),
        _ => {}
    }
    match how {
        "removed" | "a folder" => fs::remove_file(file).expect("it is ours"),
        "unreadable" => {
            fs::set_permissions(file, Permissions::from_mode(0o000)).expect("it is ours")
        }
        _ => fs::write(file, bytes).expect("it is ours"),
    }
    if how == "a folder" {
        fs::create_dir(file).expect("it is gone");
        fs::write(file.join("in it"), "").expect("it is ours");
    }
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files_below(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

/// Does what a sentence says, which names a file that is to be removed; whether it does.
fn remove_as_told(sentence: &str, store: &Path) -> bool {
    let mut words = sentence.split_whitespace();
    let path = words.find(|word| word.starts_with(&*store.to_string_lossy()));
    match path.map(Path::new) {
        Some(path) if sentence.contains("remove it") => {
            if fs::remove_file(path).is_err() {
                fs::remove_dir_all(path).expect("it is there");
            }
            true
        }
        _ => false,
    }
}

/// A scene whose store has an image and its disk, and the image's reference.
fn with_image(name: &str) -> (Scene, String) {
    let scene = Scene::new(name);
    Image::new(2000).write(&scene.0.join("img"));
    let reference = format!("oci:{}", scene.0.join("img").display());
    succeed(&mut scene.sietch(&["pull", &reference]));
    succeed(&mut dry_run(&scene, &reference));
    (scene, reference)
}

/// All of a start but the start.
fn dry_run(scene: &Scene, image: &str) -> std::process::Command {
    scene.sietch(&["run", "--dry-run", "--accel", "tcg", image])
}

#[test]
fn whatever_befalls_a_file_of_the_store_an_image_can_be_had_again() {
    let store = |scene: &Scene| scene.0.join("sietch/images");
    let files = {
        let (scene, _) = with_image("faults-store");
        let files = files_below(&store(&scene)).into_iter();
        let inside = files.map(|file| file.strip_prefix(store(&scene)).map(Path::to_path_buf));
        inside.collect::<Result<Vec<_>, _>>().expect("below it")
    };
    assert!(files.len() == 7, "{files:?}");
    for file in files {
        for how in DAMAGES {
            let (scene, reference) = with_image("faults-store");
            damage(&store(&scene).join(&file), how);
            let what = format!("{} {how}", file.display());
            comes_again(&scene, &reference, &store(&scene), &what);
        }
    }
}

fn comes_again(scene: &Scene, reference: &str, store: &Path, what: &str) {
    // What only looks says a sentence at most.
    let _ = outcome(&mut scene.sietch(&["images"]));
    let examined = scene.sietch(&["doctor"]).output().expect("sietch starts");
    let examined = String::from_utf8(examined.stdout).expect("text");
    if let Err(sentence) = outcome(&mut scene.sietch(&["images"])) {
        assert!(examined.contains(&sentence), "{what}: {examined}");
    }
    // By its name nothing can be brought again, but said so.
    if let Err(sentence) = outcome(&mut dry_run(scene, "img")) {
        let told = [
            "copy or pull the image again",
            "remove it",
            "install or pull it",
        ];
        assert!(
            told.iter().any(|way| sentence.contains(way)),
            "{what}: {sentence}"
        );
    }
    let works = |command: &[&str]| {
        let mut done = outcome(&mut scene.sietch(command));
        // Once as the sentence says, and once as it says in general.
        for _ in 0..2 {
            if let Err(sentence) = &done {
                let _ = remove_as_told(sentence, store);
                done = outcome(&mut scene.sietch(command));
            }
        }
        done.unwrap_or_else(|sentence| panic!("{what}, {command:?}: {sentence}"))
    };
    works(&["pull", reference]);
    works(&["run", "--dry-run", "--accel", "tcg", reference]);
    let list = works(&["images"]);
    assert!(list.contains("img:latest"), "{what}: {list}");
    works(&["rmi", "img"]);
}

#[test]
fn a_network_of_which_nothing_is_known_any_more_can_be_removed_and_made_anew() {
    for how in DAMAGES {
        if how == "flipped" || how == "unreadable" && rustix::process::geteuid().is_root() {
            continue;
        }
        let scene = Scene::new("faults-network");
        succeed(&mut scene.sietch(&["network", "create", "back"]));
        let description = scene.0.join("sietch/networks/back/network.json");
        damage(&description, how);
        succeed(&mut scene.sietch(&["network", "ls"]));
        for command in [
            &["network", "create", "back"][..],
            &["run", "--network", "back", "true"],
        ] {
            let sentence = outcome(&mut scene.sietch(command)).expect_err(how);
            assert!(
                sentence.contains("`sietch network rm back`"),
                "{how}: {sentence}"
            );
        }
        succeed(&mut scene.sietch(&["network", "rm", "back"]));
        succeed(&mut scene.sietch(&["network", "create", "back"]));
        assert!(succeed(&mut scene.sietch(&["network", "ls"])).contains("back"));
    }
}

#[test]
fn a_snapshot_that_is_damaged_is_a_sentence_and_can_be_removed() {
    let scene = Scene::new("faults-snapshot");
    let folder = scene.0.join("sietch/snapshots/warm");
    fs::create_dir_all(&folder).expect("a folder");
    for text in ["", "{", "{}"] {
        fs::write(folder.join("snapshot.json"), text).expect("a file");
        succeed(&mut scene.sietch(&["snapshots"]));
        let sentence = outcome(&mut scene.sietch(&["run", "--from", "warm"])).expect_err(text);
        assert!(
            sentence.contains("`sietch snapshots --rm warm`"),
            "{sentence}"
        );
    }
    succeed(&mut scene.sietch(&["snapshots", "--rm", "warm"]));
    assert!(!folder.exists());
}
