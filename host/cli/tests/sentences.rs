//! The command as a user meets it: errors are one sentence with the way out, and the
//! exit status says whose fault it was.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for one test, removed afterwards, which also holds the machines' state.
struct Scene(PathBuf);

impl Scene {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sietch-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        fs::write(path.join("kernel"), "").expect("a kernel's place");
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a file for the test");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        path.to_string_lossy().into_owned()
    }

    fn sietch(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_sietch"))
            .args(args)
            .env("XDG_RUNTIME_DIR", &self.0)
            .env("SIETCH_KERNEL", self.0.join("kernel"))
            .env("SIETCH_QEMU", fake_qemu(&self.0, "10.0.2"))
            .output()
            .expect("sietch starts")
    }

    /// The only line on standard error, and the status.
    fn complaint(&self, args: &[&str]) -> (String, i32) {
        sentence(&self.sietch(args))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sentence(output: &Output) -> (String, i32) {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "one line is expected: {text}");
    let line = lines[0]
        .strip_prefix("sietch: ")
        .expect("the command names itself");
    assert!(line.ends_with('.'), "not a sentence: {line}");
    (line.to_string(), output.status.code().expect("it exits"))
}

/// A program that says it is a QEMU of some version.
fn fake_qemu(folder: &Path, version: &str) -> PathBuf {
    let path = folder.join(format!("qemu-{version}"));
    if !path.exists() {
        let script = format!("#!/bin/sh\necho QEMU emulator version {version}\n");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }
    path
}

#[test]
fn a_text_file_is_refused_with_status_126() {
    let scene = Scene::new("text");
    let file = scene.file("notes", b"just words\n");
    let (line, status) = scene.complaint(&["run", &file]);
    assert!(
        line.contains("is not an ELF file and has no #! line"),
        "{line}"
    );
    assert_eq!(status, 126);
}

#[test]
fn a_program_that_is_not_there_has_status_127() {
    let (line, status) = Scene::new("absent").complaint(&["run", "no-such-program"]);
    assert!(line.starts_with("no-such-program is neither"), "{line}");
    assert_eq!(status, 127);
}

#[test]
fn another_architecture_is_named() {
    let scene = Scene::new("arm");
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(64, 0);
    elf[18] = 183;
    let file = scene.file("arm-program", &elf);
    let (line, status) = scene.complaint(&["run", &file]);
    assert!(line.contains("is made for 64-bit Arm"), "{line}");
    assert_eq!(status, 126);
}

#[test]
fn a_missing_library_is_named_with_who_wants_it() {
    let scene = Scene::new("library");
    let library_source = scene.file("gone.c", b"int gone(void) { return 0; }");
    let source = scene.file(
        "main.c",
        b"int gone(void); int main(void) { return gone(); }",
    );
    let library = scene.0.join("libgone.so").to_string_lossy().into_owned();
    let program = scene.0.join("wants-it").to_string_lossy().into_owned();
    let cc = |args: &[&str]| {
        let built = Command::new("cc").args(args).status().expect("cc starts");
        assert!(built.success());
    };
    cc(&["-shared", "-fPIC", "-o", &library, &library_source]);
    cc(&["-o", &program, &source, &library, "-Wl,-soname,x"]);
    fs::remove_file(&library).expect("it was built");
    let (line, status) = scene.complaint(&["run", &program]);
    assert!(line.contains("libgone.so is not found"), "{line}");
    assert!(line.contains("wants-it wants it"), "{line}");
    assert_eq!(status, 125);
}

#[test]
fn a_missing_interpreter_is_named_with_who_wants_it() {
    let scene = Scene::new("script");
    let file = scene.file("script", b"#!/opt/none/interpreter\n");
    let (line, _) = scene.complaint(&["run", &file]);
    assert!(
        line.contains("/opt/none/interpreter is not found"),
        "{line}"
    );
    assert!(line.contains("script wants it"), "{line}");
}

#[test]
fn a_taken_port_is_named_with_its_holder() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let publish = format!("127.0.0.1:{port}:80");
    let (line, status) = Scene::new("port").complaint(&["run", "-p", &publish, "sh"]);
    assert!(
        line.starts_with(&format!("Port {port} is taken by ")),
        "{line}"
    );
    assert!(line.contains(&std::process::id().to_string()), "{line}");
    assert_eq!(status, 125);
}

#[test]
fn an_image_that_does_not_fit_is_refused_with_a_size_that_does() {
    let scene = Scene::new("memory");
    let large = scene.file("large", &vec![1; 20 << 20]);
    let add = format!("{large}:/large");
    let args = ["run", "-m", "16M", "--add", &add, "sh"];
    let (line, status) = scene.complaint(&args);
    assert!(
        line.starts_with("There is not enough memory for the image"),
        "{line}"
    );
    assert!(line.contains("the machine has 16, so use -m "), "{line}");
    assert_eq!(status, 125);
}

#[test]
fn a_missing_or_old_qemu_is_told_apart() {
    let scene = Scene::new("qemu");
    let run = |qemu: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_sietch"))
            .args(["run", "--accel", "tcg", "sh"])
            .env("XDG_RUNTIME_DIR", &scene.0)
            .env("SIETCH_QEMU", qemu)
            .output();
        sentence(&output.expect("sietch starts")).0
    };
    let missing = run(Path::new("/nowhere/qemu"));
    assert!(
        missing.starts_with("QEMU is missing: install qemu-system-x86"),
        "{missing}"
    );
    let old = run(&fake_qemu(&scene.0, "5.2.0"));
    assert!(old.starts_with("QEMU 5 is too old"), "{old}");
}

#[test]
fn a_kernel_that_is_not_built_is_said_to_be() {
    let scene = Scene::new("kernel");
    fs::remove_file(scene.0.join("kernel")).expect("it was there");
    let (line, _) = scene.complaint(&["run", "sh"]);
    assert!(line.contains("run `make kernel`"), "{line}");
}

#[test]
fn machines_that_do_not_run_cannot_be_stopped_or_read() {
    let scene = Scene::new("names");
    for command in ["stop", "logs"] {
        let (line, _) = scene.complaint(&[command, "nobody"]);
        assert!(line.starts_with("No machine is called nobody"), "{line}");
    }
    assert!(scene.sietch(&["ps"]).status.success());
}

#[test]
fn a_dry_run_prints_the_line_and_starts_nothing() {
    let scene = Scene::new("dry");
    let output = scene.sietch(&[
        "run",
        "--dry-run",
        "--accel",
        "tcg",
        "-p",
        "127.0.0.1:8080:80",
        "-m",
        "64M",
        "--cpus",
        "2",
        "--strace",
        "--clumsy",
        "sh",
        "-c",
        "true",
    ]);
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    for part in [
        "-smp 2",
        "-m 64M",
        "hostfwd=tcp:127.0.0.1:8080-:80",
        "strace=1",
        "clumsy=1",
        "init=/",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!scene.0.join("sietch/sh").exists());
}

#[test]
fn a_build_writes_all_that_another_monitor_needs() {
    let scene = Scene::new("build");
    let folder = scene.0.join("out").to_string_lossy().into_owned();
    let output = scene.sietch(&["build", "-o", &folder, "sh"]);
    assert!(output.status.success(), "{output:?}");
    for name in ["sietch-kernel", "image.cpio", "command-line"] {
        assert!(Path::new(&folder).join(name).is_file(), "{name}");
    }
}
