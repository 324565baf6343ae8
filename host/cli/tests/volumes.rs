//! `sietch volume` as a user meets it: what it makes is an ext4 file system, and what it refuses it
//! refuses in one sentence with the way out.

mod scene;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use scene::Scene;

impl Scene {
    fn output(&self, args: &[&str]) -> Output {
        self.sietch(args).output().expect("sietch starts")
    }

    /// What it writes; it must succeed.
    fn said(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Its only line on standard error; it must fail.
    fn complaint(&self, args: &[&str]) -> String {
        sentence(&self.output(args))
    }

    fn image(&self, name: &str) -> PathBuf {
        self.0.join("sietch/volumes").join(format!("{name}.img"))
    }

    /// What is in the folder of volumes.
    fn files(&self) -> Vec<String> {
        let listing = fs::read_dir(self.0.join("sietch/volumes")).expect("it is there");
        let names = listing.map(|entry| entry.expect("readable").file_name());
        let mut names: Vec<_> = names
            .map(|name| name.into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    /// Runs a program of e2fsprogs on a volume; what it writes.
    fn look(&self, program: &str, args: &[&str], name: &str) -> String {
        let folder = ["/usr/sbin", "/sbin"].map(|folder| PathBuf::from(folder).join(program));
        let program = folder.iter().find(|path| path.exists()).expect("installed");
        let output = Command::new(program)
            .args(args)
            .arg(self.image(name))
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn sentence(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text
        .strip_prefix("sietch: ")
        .expect("the command names itself");
    assert_eq!(line.lines().count(), 1, "one line is expected: {text}");
    assert!(line.trim_end().ends_with('.'), "not a sentence: {line}");
    assert_eq!(output.status.code(), Some(125));
    line.trim_end().to_string()
}

#[test]
fn a_new_volume_is_a_sparse_clean_file_system_whose_top_is_empty_and_roots() {
    let scene = Scene::new("volume-new");
    assert_eq!(
        scene.said(&["volume", "create", "db", "--size", "1G"]),
        "db\n"
    );
    let metadata = fs::metadata(scene.image("db")).expect("made");
    assert_eq!(metadata.len(), 1 << 30);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(
        std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 < 64 << 20,
        "not sparse"
    );
    scene.look("e2fsck", &["-fn"], "db");
    let top = scene.look("debugfs", &["-R", "ls -l /"], "db");
    assert!(!top.contains("lost+found"), "{top}");
    let owner = scene.look("debugfs", &["-R", "stat /"], "db");
    assert!(owner.contains("Mode:  0755"), "{owner}");
    assert!(owner.contains("User:     0   Group:     0"), "{owner}");
    assert_eq!(scene.files(), ["db.img"]);
}

#[test]
fn a_volume_is_listed_inspected_and_removed() {
    let scene = Scene::new("volume-list");
    assert_eq!(scene.said(&["volume", "ls"]).lines().count(), 1);
    scene.said(&["volume", "create", "--size", "64M", "b"]);
    scene.said(&["volume", "create", "--size", "64M", "a"]);
    let table = scene.said(&["volume", "ls"]);
    let names: Vec<_> = table.lines().map(|line| line.split(' ').next()).collect();
    assert_eq!(names, [Some("NAME"), Some("a"), Some("b")]);
    assert!(
        table
            .lines()
            .nth(1)
            .is_some_and(|row| row.contains("64 MiB") && row.contains("clean"))
    );
    let told: serde_json::Value =
        serde_json::from_str(&scene.said(&["volume", "inspect", "a"])).expect("JSON");
    assert_eq!(told[0]["name"], "a");
    assert_eq!(told[0]["state"], "clean");
    assert_eq!(told[0]["ext4"]["size_bytes"], 64 << 20);
    assert_eq!(told[0]["ext4"]["label"], "a");
    assert_eq!(told[0]["file"], scene.image("a").to_str().expect("text"));
    assert_eq!(scene.said(&["volume", "rm", "a", "b"]), "a\nb\n");
    assert!(scene.files().is_empty());
    for command in ["rm", "inspect", "fsck"] {
        let line = scene.complaint(&["volume", command, "a"]);
        assert!(line.starts_with("No volume is called a"), "{line}");
    }
}

#[test]
fn a_volume_that_is_there_is_not_made_again() {
    let scene = Scene::new("volume-again");
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    let before = fs::read(scene.image("db")).expect("made");
    let line = scene.complaint(&["volume", "create", "--size", "32M", "db"]);
    assert!(
        line.starts_with("A volume called db is there already"),
        "{line}"
    );
    assert!(fs::read(scene.image("db")).expect("there") == before);
}

#[test]
fn of_many_who_make_one_volume_at_once_one_does() {
    let scene = Scene::new("volume-race");
    let start = |_| {
        let mut command = scene.sietch(&["volume", "create", "--size", "16M", "db"]);
        command
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts")
    };
    let children: Vec<_> = (0..6).map(start).collect();
    let ends = children
        .into_iter()
        .map(|mut child| child.wait().expect("it ends").success());
    assert_eq!(ends.filter(|is_made| *is_made).count(), 1);
    assert_eq!(scene.files(), ["db.img"]);
    scene.look("e2fsck", &["-fn"], "db");
}

#[test]
fn what_a_killed_maker_left_is_no_volume_and_goes() {
    let scene = Scene::new("volume-left");
    let folder = scene.0.join("sietch/volumes");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join(".new-4194999-db"), "half").expect("written");
    assert_eq!(scene.said(&["volume", "ls"]).lines().count(), 1);
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    assert_eq!(scene.files(), ["db.img"]);
}

#[test]
fn a_volume_is_filled_from_a_folder_and_refused_if_that_is_larger() {
    let scene = Scene::new("volume-from");
    let folder = scene.0.join("from");
    fs::create_dir_all(folder.join("a")).expect("made");
    fs::write(folder.join("a/file"), "text").expect("written");
    fs::write(folder.join("large"), vec![1; 9 << 20]).expect("written");
    let from = folder.to_str().expect("text");
    scene.said(&["volume", "create", "--size", "32M", "--from", from, "db"]);
    scene.look("e2fsck", &["-fn"], "db");
    assert_eq!(scene.look("debugfs", &["-R", "cat /a/file"], "db"), "text");
    let line = scene.complaint(&["volume", "create", "--size", "12M", "--from", from, "small"]);
    assert!(line.contains("takes 9 MiB: use --size "), "{line}");
    let line = scene.complaint(&["volume", "create", "--from", "/nowhere/x", "none"]);
    assert!(line.contains("correct the path after --from"), "{line}");
    assert_eq!(scene.files(), ["db.img"]);
}

#[test]
fn what_the_host_has_no_room_for_is_refused_before() {
    let scene = Scene::new("volume-room");
    let line = scene.complaint(&["volume", "create", "--size", "15T", "db"]);
    assert!(
        line.starts_with("There is not enough room for 15 TiB in "),
        "{line}"
    );
    assert!(line.contains("use a smaller --size"), "{line}");
}

#[test]
fn sizes_and_names_that_cannot_be_are_said_to_be() {
    let scene = Scene::new("volume-words");
    for (args, why) in [
        (
            ["volume", "create", "--size=10X", "db"],
            "such as 512M or 10G",
        ),
        (
            ["volume", "create", "--size=1M", "db"],
            "less than a file system with a journal needs",
        ),
        (
            ["volume", "create", "--size=1G", "a/b"],
            "a volume's name has letters",
        ),
    ] {
        let output = scene.output(&args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(why), "{text}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_volume_that_somebody_uses_is_neither_removed_nor_changed() {
    let scene = Scene::new("volume-used");
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    let held = File::open(scene.image("db")).expect("there");
    held.lock().expect("nobody has it");
    for args in [
        &["volume", "rm", "db"][..],
        &["volume", "fsck", "db"],
        &["volume", "fsck", "--dry-run", "db"],
        &["run", "--dry-run", "-v", "db:/data", "sh"],
        &["run", "--dry-run", "-v", "db:/data:ro", "sh"],
    ] {
        let line = scene.complaint(args);
        assert!(
            line.starts_with("The volume db is used by another process"),
            "{line}"
        );
    }
    assert!(scene.said(&["volume", "ls"]).contains("in use"));
    held.unlock().expect("it is ours");
    scene.said(&["volume", "rm", "db"]);
}

#[test]
fn readers_share_a_volume_that_nobody_changes() {
    let scene = Scene::new("volume-shared");
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    let held = File::open(scene.image("db")).expect("there");
    held.lock_shared().expect("nobody has it");
    scene.said(&["run", "--dry-run", "-v", "db:/data:ro", "sh"]);
    scene.said(&["volume", "fsck", "-n", "db"]);
    scene.complaint(&["run", "--dry-run", "-v", "db:/data", "sh"]);
    scene.complaint(&["volume", "rm", "db"]);
}

#[test]
fn damage_is_found_and_mended_only_when_asked() {
    let scene = Scene::new("volume-damage");
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    scene.said(&["volume", "fsck", "db"]);
    assert!(
        !scene
            .look("debugfs", &["-R", "ls /"], "db")
            .contains("lost+found")
    );
    scene.look("debugfs", &["-w", "-R", "set_inode_field <2> mode 0"], "db");
    let output = scene.output(&["volume", "fsck", "db"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("The volume db is damaged"), "{said}");
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        scene
            .output(&["volume", "fsck", "--repair", "db"])
            .status
            .code(),
        Some(1)
    );
    scene.said(&["volume", "fsck", "db"]);
}

#[test]
fn a_machine_gets_a_volume_as_a_disk_that_is_known_by_its_uuid() {
    let scene = Scene::new("volume-run");
    let line = scene.complaint(&["run", "--dry-run", "-v", "db:/data", "sh"]);
    assert!(line.starts_with("No volume is called db"), "{line}");
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    let told: serde_json::Value =
        serde_json::from_str(&scene.said(&["volume", "inspect", "db"])).expect("JSON");
    let uuid = told[0]["ext4"]["uuid"]
        .as_str()
        .expect("it has one")
        .to_string();
    let run = |more: &[&str]| {
        scene.said(&[&["run", "--dry-run", "--accel", "tcg"], more, &["sh"]].concat())
    };
    let line = run(&["-v", "db:/data"]);
    assert!(line.contains(&format!("mountdisk={uuid}:/data ")), "{line}");
    assert!(
        line.contains(scene.image("db").to_str().expect("text")),
        "{line}"
    );
    let line = run(&["-v", "db:/a:ro", "-v", "db:/b:ro"]);
    assert_eq!(line.matches("virtio-blk").count(), 1, "{line}");
    assert!(
        line.contains(&format!("mountdisk={uuid}:/a:ro mountdisk={uuid}:/b:ro")),
        "{line}"
    );
    assert!(line.contains("read-only=on"), "{line}");
}

#[test]
fn a_root_is_a_volume_or_a_file_and_the_first_disk() {
    let scene = Scene::new("volume-root");
    let run = |root: &str| {
        let flags = ["run", "--dry-run", "--accel", "tcg", "--root-disk", root];
        let disk = format!("--disk={}", scene.0.join("kernel").display());
        scene.output(&[&flags[..], &[&disk, "/bin/on-the-disk", "-x"]].concat())
    };
    let line = sentence(&run("system"));
    assert!(line.starts_with("No volume is called system"), "{line}");
    scene.said(&["volume", "create", "--size", "16M", "system"]);
    let image = scene.image("system");
    let image = image.to_str().expect("text");
    for root in ["system", image] {
        let line = String::from_utf8(run(root).stdout).expect("text");
        assert!(line.contains("init=/bin/on-the-disk"), "{line}");
        assert!(line.contains("root=UUID="), "{line}");
        let first = line.find("node-name=disk0").expect("a disk");
        assert!(line.find(image).is_some_and(|at| at > first), "{line}");
        assert!(
            line.find("node-name=disk1").is_some_and(|at| at > first),
            "{line}"
        );
    }
    let line = sentence(&run("./no-such-file"));
    assert!(
        line.contains("correct the path after --root-disk"),
        "{line}"
    );
    let kernel = scene.0.join("kernel");
    let line = sentence(&run(kernel.to_str().expect("text")));
    assert!(line.contains("holds no ext4 file system"), "{line}");
}

#[test]
fn two_disks_with_one_uuid_are_refused() {
    let scene = Scene::new("volume-twins");
    scene.said(&["volume", "create", "--size", "16M", "db"]);
    fs::copy(scene.image("db"), scene.image("copy")).expect("copied");
    let args = ["run", "--dry-run", "-v", "db:/a", "-v", "copy:/b", "sh"];
    let line = scene.complaint(&args);
    assert!(line.contains("have the same UUID"), "{line}");
}

#[test]
fn without_a_home_the_folder_is_asked_for() {
    let scene = Scene::new("volume-home");
    let mut command = scene.sietch(&["volume", "ls"]);
    command.env_remove("HOME").env_remove("XDG_DATA_HOME");
    let line = sentence(&command.output().expect("it starts"));
    assert!(line.contains("set HOME, or XDG_DATA_HOME"), "{line}");
}
