//! The header against the library: what a C compiler makes of the one is what the other has.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sietch_io_c::config::Config;
use sietch_io_c::counters::Counter;
use sietch_io_c::data::Data;
use sietch_io_c::event::{Event, Kind};
use sietch_io_c::names::{Connection, Listener, Socket};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
const STRICT: [&str; 4] = ["-pedantic", "-Wall", "-Wextra", "-Werror"];

fn header() -> String {
    format!("{FOLDER}/include/sietch-io.h")
}

fn library() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    test.with_file_name("libsietch_io_c.so")
}

fn run(program: impl AsRef<OsStr>, args: &[&str]) -> Output {
    let name = program.as_ref();
    let output = Command::new(name).args(args).output();
    output.unwrap_or_else(|error| panic!("{}: {error}", name.display()))
}

fn succeeds(program: impl AsRef<OsStr>, args: &[&str]) -> String {
    let output = run(program, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{args:?}: {said}\n{errors}");
    said.into_owned()
}

/// A C program of `tests/programs`, with the library.
fn compile(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = format!("{FOLDER}/tests/programs/{name}.c");
    let include = format!("-I{FOLDER}/include");
    let (library, to) = (
        library().display().to_string(),
        program.display().to_string(),
    );
    let args = ["-std=c99", &include, &source, &library, "-o", &to];
    succeeds("cc", &[&STRICT[..], &args].concat());
    program
}

/// Runs it. The library is looked for under its own name.
fn runs(name: &str) -> String {
    let program = compile(name);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let as_installed = folder.join("libsietch-io.so.0");
    // Somebody else may just do the same.
    let fresh = folder.join(name).with_extension("so");
    fs::copy(library(), &fresh).expect("the library was built");
    fs::rename(fresh, as_installed).expect("it has another name");
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", folder)
        .output();
    let output = output.expect("it was compiled");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}{errors}");
    said
}

#[test]
fn the_header_is_c99_without_a_warning() {
    let args = ["-std=c99", "-fsyntax-only", "-x", "c", &header()];
    succeeds("cc", &[&STRICT[..], &args].concat());
}

#[test]
fn the_header_is_cpp_without_a_warning() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("no C++ compiler is installed");
        return;
    }
    let args = ["-fsyntax-only", "-x", "c++", &header()];
    succeeds("c++", &[&STRICT[..], &args].concat());
}

#[test]
fn structs_and_kinds_are_the_same_on_both_sides() {
    let mut ours = String::new();
    let mut say = |name: &str, number: usize| ours += &format!("{name} {number}\n");
    macro_rules! layout {
        ($name:literal, $of:ty $(, $field:ident)*) => {
            say($name, size_of::<$of>());
            $( say(concat!($name, ".", stringify!($field)), offset_of!($of, $field)); )*
        };
    }
    layout!("socket", Socket);
    layout!("listener", Listener);
    layout!("connection", Connection);
    layout!("data", Data);
    layout!(
        "config",
        Config,
        link,
        address,
        gateway,
        ring_entries,
        chunks,
        sockets_max,
        reserved
    );
    layout!(
        "event", Event, kind, error, socket, listener, connection, data, from, reserved
    );
    layout!("counter", Counter, value, name);
    for (name, kind) in [
        ("DATAGRAM", Kind::Datagram),
        ("UNDELIVERED", Kind::Undelivered),
        ("ACCEPTED", Kind::Accepted),
        ("CONNECTED", Kind::Connected),
        ("RECEIVED", Kind::Received),
        ("SENDABLE", Kind::Sendable),
        ("ENDED", Kind::Ended),
        ("LOST", Kind::Lost),
    ] {
        say(name, kind as usize);
    }
    assert_eq!(runs("layout"), ours);
}

/// The functions that the header declares: the names in front of a parenthesis, but for the prose.
fn declared() -> BTreeSet<String> {
    let text = fs::read_to_string(header()).expect("there is a header");
    let code = text
        .split("*/")
        .map(|part| part.split("/*").next().unwrap_or_default());
    let code: String = code.collect();
    let before = code.split('(').map(|part| {
        let is_name = |at: char| at.is_ascii_alphanumeric() || at == '_';
        part.rsplit(|at| !is_name(at)).next().unwrap_or_default()
    });
    let functions = before.filter(|name| name.starts_with("sietch_"));
    functions.map(String::from).collect()
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let library = library().display().to_string();
    let symbols = succeeds("nm", &["-D", "--defined-only", "--format=posix", &library]);
    let names = symbols.lines().filter_map(|line| line.split(' ').next());
    let exported: BTreeSet<String> = names.map(String::from).collect();
    let declared = declared();
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(exported, declared);
}

#[test]
fn what_cannot_be_is_refused_with_a_number_and_a_sentence() {
    assert_eq!(runs("refusals"), "fine\n");
}
