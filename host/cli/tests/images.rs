//! Container images as a user meets them: what is wrong with one is a sentence with the way out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder for one test, removed afterwards, which holds a user's images.
struct Scene(PathBuf);

impl Scene {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sietch-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        fs::write(path.join("kernel"), "").expect("a kernel's place");
        let qemu = path.join("qemu");
        fs::write(&qemu, "#!/bin/sh\necho QEMU emulator version 10.0.2\n").expect("a script");
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("made executable");
        Self(path)
    }

    fn output(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_sietch"))
            .args(args)
            .env("XDG_RUNTIME_DIR", &self.0)
            .env("XDG_DATA_HOME", &self.0)
            .env("SIETCH_KERNEL", self.0.join("kernel"))
            .env("SIETCH_QEMU", self.0.join("qemu"))
            .output()
            .expect("sietch starts")
    }

    /// Its only line on standard error.
    fn complaint(&self, args: &[&str], status: i32) -> String {
        let output = self.output(args);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_image_that_is_not_there_is_a_sentence() {
    let scene = Scene::new("images-none");
    let folder = scene.complaint(&["run", "oci:/nowhere:7"], 125);
    assert!(folder.contains("no image /nowhere"), "{folder}");
    let archive = scene.complaint(&["pull", "docker-archive:/nowhere.tar"], 125);
    assert!(archive.contains("no such file"), "{archive}");
    let name = scene.complaint(&["rmi", "nowhere"], 125);
    assert!(name.contains("`sietch images` lists"), "{name}");
    let form = scene.complaint(&["pull", "docker://nowhere"], 125);
    assert!(form.contains("docker://HOST/NAME"), "{form}");
}

#[test]
fn a_registry_that_does_not_answer_is_a_sentence() {
    let scene = Scene::new("images-registry");
    let closed = scene.complaint(&["pull", "docker://127.0.0.1:1/redis"], 125);
    assert!(
        closed.contains("The registry 127.0.0.1:1 says nothing"),
        "{closed}"
    );
}

#[test]
fn a_bare_name_that_is_neither_program_nor_image_is_not_found() {
    let scene = Scene::new("images-bare");
    let bare = scene.complaint(&["run", "no-such-thing:7"], 127);
    assert!(bare.contains("no-such-thing:7 is not found"), "{bare}");
}

#[test]
fn a_program_of_the_host_has_no_entry_point() {
    let scene = Scene::new("images-entry");
    let entry = scene.complaint(&["run", "--entrypoint", "sh", "true"], 125);
    assert!(entry.contains("has no entry point"), "{entry}");
}

#[test]
fn a_store_with_nothing_in_it_lists_nothing() {
    let scene = Scene::new("images-empty");
    let output = scene.output(&["images"]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
}
