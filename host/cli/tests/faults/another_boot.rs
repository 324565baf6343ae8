//! What is left of another boot: numbers of processes that are others' now, folders of machines that are gone, sockets
//! behind which nobody is.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::json;

use crate::scene::Scene;
use crate::{outcome, succeed};

/// A process that is called so, and ends with this.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn called(name: &str, scene: &Scene) -> Self {
        let path = scene.0.join(name);
        // A copy may be busy: what other tests start at the moment holds it open for writing until their exec(2).
        symlink("/bin/sleep", &path).expect("a link");
        Self(Command::new(path).arg("600").spawn().expect("it starts"))
    }

    fn is_there(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone, which a test has seen then.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of no boot of any host.
const MARK: &str = "00000000-0000-0000-0000-000000000000:1";

/// Writes what was kept of a machine that ran when the host went down.
fn leave(scene: &Scene, name: &str, qemu: u32, session: u32) {
    let folder = scene.0.join("sietch").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let settings = json!({
        "name": name, "command": ["true"], "qemu_pid": qemu, "session_pid": session,
        "qemu_mark": MARK, "session_mark": MARK, "ports": [], "kernel": "/k",
        "memory_mib": 1, "started_s": 0,
    });
    fs::write(folder.join("settings.json"), settings.to_string()).expect("a file");
    fs::write(folder.join("owner"), format!("{session} {MARK}")).expect("a file");
}

/// Binds a socket and leaves it.
fn leave_socket(path: &Path) {
    fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    drop(UnixListener::bind(path).expect("bound"));
}

#[test]
fn a_machine_of_another_boot_has_ended_whoever_has_its_numbers_now() {
    let scene = Scene::new("faults-boot");
    let (mut qemu, mut session) = (
        Process::called("qemu-other", &scene),
        Process::called("sietch-other", &scene),
    );
    let numbers = (qemu.0.id(), session.0.id());
    leave(&scene, "db", numbers.0, numbers.1);
    for socket in ["control.sock", "agent.sock", "qmp.sock", "card.sock"] {
        leave_socket(&scene.0.join("sietch/db").join(socket));
    }
    let ps = succeed(&mut scene.sietch(&["ps"]));
    assert!(!ps.contains("db"), "{ps}");
    assert!(succeed(&mut scene.sietch(&["ps", "-a"])).contains("Exited (137)"));
    for command in [
        &["stop", "db"][..],
        &["kill", "db"],
        &["exec", "db", "true"],
    ] {
        let sentence = outcome(&mut scene.sietch(command)).expect_err("it has ended");
        assert!(sentence.contains("db"), "{command:?}: {sentence}");
    }
    succeed(&mut scene.sietch(&["rm", "db"]));
    assert!(qemu.is_there() && session.is_there());
}

#[test]
fn a_name_is_free_whose_owner_was_of_another_boot() {
    let scene = Scene::new("faults-owner");
    let other = Process::called("sietch-other", &scene);
    let folder = scene.0.join("sietch/db");
    for owner in [
        format!("{} {MARK}", other.0.id()),
        "1".into(),
        String::new(),
    ] {
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("owner"), &owner).expect("a file");
        // The fake QEMU ends at once, so the machine is lost; but its name was free.
        let said = scene
            .sietch(&["run", "--rm", "--name", "db", "true"])
            .output();
        let said = String::from_utf8(said.expect("sietch starts").stderr).expect("text");
        assert!(!said.contains("name"), "{owner:?}: {said}");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("owner"), &owner).expect("a file");
        succeed(&mut scene.sietch(&["rm", "db"]));
        assert!(!folder.exists());
    }
}

#[test]
fn a_network_whose_switch_went_with_the_host_works() {
    let scene = Scene::new("faults-switch");
    succeed(&mut scene.sietch(&["network", "create", "back"]));
    leave_socket(&scene.0.join("sietch-networks/back/switch.sock"));
    assert!(
        succeed(&mut scene.sietch(&["network", "inspect", "back"])).contains("\"machines\": []")
    );
    succeed(&mut scene.sietch(&["network", "rm", "back"]));
}

#[test]
fn what_was_left_half_made_goes_with_the_next_command() {
    let scene = Scene::new("faults-left");
    let base = scene.0.join("sietch");
    for left in [".new-1-db", ".old-4194999-db"] {
        fs::create_dir_all(base.join(left)).expect("a folder");
        fs::write(base.join(left).join("settings.json"), "{}").expect("a file");
    }
    fs::create_dir_all(base.join("cut")).expect("a folder");
    fs::write(base.join("cut/owner"), format!("1 {MARK}")).expect("a file");
    // Where a user has all in one place, what lasts is beside machines.
    let kept = base.join("images");
    fs::create_dir_all(&kept).expect("a folder");
    succeed(&mut scene.sietch(&["ps", "-a"]));
    let names = || {
        let listing = fs::read_dir(&base).expect("it is there").flatten();
        let folders = listing.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    assert_eq!(names().len(), 2);
    // Whose start was cut off goes by its name, or by the doctor.
    let _ = scene.sietch(&["doctor"]).output();
    assert_eq!(names(), ["images"]);
    for command in [&["rm", "images"][..], &["run", "--name", "images", "true"]] {
        outcome(&mut scene.sietch(command)).expect_err("it is no machine's");
    }
    assert!(kept.exists());
}
