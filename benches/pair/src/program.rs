//! Our own programs, guests' and clients', built when they are needed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::OUTPUT;

/// Builds the server `benches/pair/servers/NAME.c`; the program's path.
pub fn server(name: &str) -> Result<String, String> {
    build(&format!("benches/pair/servers/{name}.c"))
}

/// The same, linked with the host's C library, so that a library can be put in front of it.
pub fn dynamic_server(name: &str) -> Result<String, String> {
    dynamic(&format!("benches/pair/servers/{name}.c"))
}

/// Any program of one source file like this.
pub fn dynamic(source: &str) -> Result<String, String> {
    let name = Path::new(source).file_stem().unwrap_or_default();
    compile(source, &format!("{}-dynamic", name.to_string_lossy()), &[])
}

/// Builds a program of one source file, static, so that it needs nothing in an image; its path.
pub fn build(source: &str) -> Result<String, String> {
    let name = Path::new(source).file_stem().unwrap_or_default();
    compile(source, &name.to_string_lossy(), &["-static"])
}

/// A line `// build: liburing` in the source asks for that library, of which Debian's package of programs has no name for
/// linkers.
fn compile(source: &str, name: &str, flags: &[&str]) -> Result<String, String> {
    let program = format!("{OUTPUT}/{name}");
    let text = fs::read_to_string(source).unwrap_or_default();
    let libraries: &[&str] = match text.contains("// build: liburing") {
        true => &["-l:liburing.so.2"],
        false => &[],
    };
    fs::create_dir_all(OUTPUT).map_err(|error| format!("{OUTPUT}: {error}"))?;
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-D_GNU_SOURCE", "-I", "tests/programs"])
        .args(flags)
        .args(["-o", &program])
        .arg(source)
        .args(libraries)
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(program),
        false => Err(format!(
            "{source} cannot be compiled: `make setup` installs the compiler."
        )),
    }
}

/// Builds one of the administrator's tools; the program's path.
pub fn tool(name: &str) -> Result<String, String> {
    let built = Command::new("cargo")
        .args(["build", "-q", "-p", "admin", "--bin", name])
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(format!("target/debug/{name}")),
        false => Err(format!("{name} cannot be built.")),
    }
}

/// Builds a library for programs as it is delivered; its path.
pub fn library(package: &str) -> Result<String, String> {
    let built = Command::new("cargo")
        .args(["build", "-q", "--release", "-p", package])
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(format!("target/release/lib{package}.so")),
        false => Err(format!("{package} cannot be built.")),
    }
}

/// Builds an example of a crate as it is delivered, but static and at fixed addresses; the
/// program's path.
pub fn example(package: &str, name: &str) -> Result<String, String> {
    let built = Command::new("cargo")
        .args(["rustc", "-q", "--release", "-p", package, "--example", name])
        .args(["--", "-C", "target-feature=+crt-static"])
        .args(["-C", "relocation-model=static"])
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(format!("target/release/examples/{name}")),
        false => Err(format!("{name} cannot be built.")),
    }
}
