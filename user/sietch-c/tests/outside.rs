//! Programs outside of the repository, in C with what is installed, in Rust with a path to the crate.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace.
fn repository() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = folder.join("../..").canonicalize();
    repository.expect("the crate is in a workspace")
}

/// An empty folder, which no manifest of the workspace's knows.
fn fresh(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("sietch-io-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("there is room for a folder");
    folder
}

fn succeeds(command: &mut Command) {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

/// Where cargo puts the libraries of a test. It gives the archive's name a suffix there.
fn built(to: &Path) {
    let test = env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("it has a folder");
    let named = |name: &str, start: &str, end: &str| {
        let files = fs::read_dir(folder).expect("the test is there");
        let fits = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        };
        let files = files.flatten().map(|file| file.path()).filter(fits);
        let newest = files.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
        let newest = newest.unwrap_or_else(|| panic!("no {name} was built"));
        fs::copy(newest, to.join(name)).expect("there is room for a library");
    };
    named("libsietch_io_c.so", "libsietch_io_c", ".so");
    named("libsietch_io_c.a", "libsietch_io_c", ".a");
}

#[test]
fn c_programs_build_with_nothing_but_the_installed_files() {
    let (prefix, libraries) = (fresh("prefix"), fresh("libraries"));
    built(&libraries);
    let script = repository().join("user/sietch-c/install.sh");
    succeeds(Command::new(script).args([&prefix, &libraries]));

    let examples = prefix.join("share/doc/sietch-io");
    let flags = format!("-Wl,-rpath,{}/lib", prefix.display());
    let mut make = Command::new("make");
    make.current_dir(&examples)
        .env("CPATH", prefix.join("include"))
        .env("LIBRARY_PATH", prefix.join("lib"))
        .env("LDFLAGS", flags);
    succeeds(&mut make);
    for name in ["udp_echo", "http"] {
        let output = Command::new(examples.join(name)).output();
        let output = output.expect("it was built");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("LINK ADDRESS/PREFIX"), "{name}: {said}");
    }

    // All of it in the program.
    let line = "cc -o http http.c $(pkg-config --cflags sietch-io) -l:libsietch-io.a \
                $(pkg-config --libs --static sietch-io | sed s/-lsietch-io//) && \
                ! readelf -d http | grep sietch";
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", line])
        .current_dir(&examples)
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .env("LIBRARY_PATH", prefix.join("lib"));
    succeeds(&mut shell);
    for folder in [prefix, libraries] {
        fs::remove_dir_all(folder).ok();
    }
}

#[test]
fn a_rust_program_builds_with_a_path_to_the_crate() {
    let (repository, project) = (repository(), fresh("project"));
    let crate_folder = repository.join("user/libos");
    let manifest = format!(
        "[package]\nname = \"echo\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nsietch-io = {{ path = \"{}\" }}\n",
        crate_folder.display()
    );
    fs::create_dir(project.join("src")).expect("it is empty");
    fs::write(project.join("Cargo.toml"), manifest).expect("there is room");
    let copy = |from: PathBuf, to: &str| fs::copy(from, project.join(to)).map(drop);
    copy(crate_folder.join("examples/udp_echo.rs"), "src/main.rs").expect("there is an example");
    // What the workspace was built with is here already: nothing is asked for over a network.
    copy(repository.join("Cargo.lock"), "Cargo.lock").expect("there is a lock file");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["check", "-q", "--offline"])
        .current_dir(&project)
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"),
        );
    succeeds(&mut cargo);
    fs::remove_dir_all(project).ok();
}
