//! Builds the small programs, into `build/programs`.
//!
//! A program takes its place whole (`put`): a machine that reads the one before, because several
//! start at once or two runs share a checkout, reads that to its end.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use crate::guest::state_folder;

/// Where built programs go.
const OUTPUT: &str = "build/programs";

/// How a C program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// With the host's glibc, as Debian's programs are.
    Dynamic,
    /// With musl and nothing to load.
    StaticMusl,
}

/// Builds the command under test into the folder of this program, and fetches what other crates need:
/// their tests build them where no registry can be reached.
pub fn command() -> Result<(), String> {
    let mut fetch = Command::new("cargo");
    fetch.args(["fetch", "-q"]);
    run(fetch, Path::new("Cargo.lock"))?;
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "-q", "-p", "cli"]);
    if this.components().any(|part| part.as_os_str() == "release") {
        cargo.arg("--release");
    }
    run(cargo, Path::new("host/cli"))
}

/// Compiles a C program; a line `// build: static` in it asks for static musl, and one of `liburing` for that library.
pub fn c(source: &Path) -> Result<PathBuf, String> {
    let text = fs::read_to_string(source).map_err(|error| format!("{source:?}: {error}"))?;
    let link = match text.contains("// build: static") {
        true => Link::StaticMusl,
        false => Link::Dynamic,
    };
    if text.contains("// build: liburing") {
        // Debian's package of programs has no name for linkers.
        return put(source, |fresh| {
            let mut compiler = compiler(link);
            compiler.arg("-o").arg(fresh).arg(source);
            compiler.arg("-l:liburing.so.2");
            run(compiler, source)
        });
    }
    c_linked(source, link)
}

/// Compiles a C program in a given way.
pub fn c_linked(source: &Path, link: Link) -> Result<PathBuf, String> {
    let compiler = compiler(link);
    put(source, |fresh| compile(compiler, source, fresh))
}

/// Compiles a C program that takes `address` for loopback's; beside the one that does not.
pub fn c_with_loopback(source: &Path, address: Ipv4Addr) -> Result<PathBuf, String> {
    let mut compiler = compiler(Link::Dynamic);
    compiler.arg(format!("-DINADDR_LOOPBACK={:#x}", address.to_bits()));
    let name = source.file_stem().ok_or("a source file without a name")?;
    let place = format!("{}.linked", name.display());
    put(Path::new(&place), |fresh| compile(compiler, source, fresh))
}

fn compiler(link: Link) -> Command {
    let mut compiler = match link {
        Link::Dynamic => Command::new("cc"),
        Link::StaticMusl => Command::new("musl-gcc"),
    };
    compiler.args([
        "-O1",
        "-g",
        "-Wall",
        "-D_GNU_SOURCE",
        "-pthread",
        "-I",
        "tests/programs",
    ]);
    if link == Link::StaticMusl {
        compiler.arg("-static");
    }
    compiler
}

fn compile(mut compiler: Command, source: &Path, program: &Path) -> Result<(), String> {
    compiler.arg(source).args(["-lm", "-o"]).arg(program);
    run(compiler, source)
}

/// Builds a shared library of this workspace, as it is delivered.
pub fn library(package: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "-q", "--release", "-p", package]);
    run(cargo, Path::new("user"))?;
    Ok(PathBuf::from(format!("target/release/lib{package}.so")))
}

/// Builds the program that disks for clouds start first, static as `tools/cloud-init.sh` makes it, but of crates that are
/// built already: optimized for a target of its own it takes much longer than its tests.
pub fn cloud_init() -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "-q", "-p", "cloud-init"]);
    cargo.args(["--bin", "sietch-cloud-init", "--"]);
    cargo.args(["-C", "target-feature=+crt-static", "-C", "strip=symbols"]);
    run(cargo, Path::new("user/cloud-init"))?;
    Ok(PathBuf::from("target/debug/sietch-cloud-init"))
}

/// Builds a program of this workspace.
pub fn tool(package: &str, name: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "-q", "-p", package, "--bin", name]);
    run(cargo, Path::new("user"))?;
    Ok(Path::new("target/debug").join(name))
}

/// Builds an example of a crate of this workspace.
pub fn example(package: &str, name: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "-q", "-p", package, "--example", name]);
    run(cargo, Path::new("user"))?;
    Ok(Path::new("target/debug/examples").join(name))
}

/// Installs `libsietch-io` for C programs into this run's folder; where.
fn install() -> Result<PathBuf, String> {
    let prefix = state_folder().join("installed");
    if !prefix.exists() {
        let mut script = Command::new("user/sietch-c/install.sh");
        script.arg(&prefix);
        run(script, Path::new("user/sietch-c"))?;
    }
    Ok(prefix)
}

/// Has a command find what is installed, then and when its program runs.
fn find_installed(command: &mut Command, prefix: &Path) {
    let lib = prefix.join("lib");
    command
        .env("CPATH", prefix.join("include"))
        .env("LDFLAGS", format!("-Wl,-rpath,{}", lib.display()))
        .env("LIBRARY_PATH", lib);
}

/// Builds an example of the installed `libsietch-io`, beside its source there.
pub fn installed_example(name: &str) -> Result<PathBuf, String> {
    let prefix = install()?;
    let folder = prefix.join("share/doc/sietch-io");
    let mut make = Command::new("make");
    make.arg("-C").arg(&folder).arg(name);
    find_installed(&mut make, &prefix);
    run(make, &folder)?;
    Ok(folder.join(name))
}

/// Compiles a C program with the installed `libsietch-io`, as an archive.
pub fn with_installed(source: &Path) -> Result<PathBuf, String> {
    let prefix = install()?;
    let program = prefix.join(source.file_stem().ok_or("a source file without a name")?);
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&program).arg(source).args([
        "-l:libsietch-io.a",
        "-lgcc_s",
        "-lpthread",
        "-ldl",
        "-lm",
    ]);
    find_installed(&mut compiler, &prefix);
    run(compiler, source)?;
    Ok(program)
}

/// Compiles a Go program without C.
pub fn go(source: &Path) -> Result<PathBuf, String> {
    let mut compiler = Command::new("go");
    compiler.env("CGO_ENABLED", "0").args(["build", "-o"]);
    put(source, |fresh| {
        compiler.arg(fresh).arg(source);
        run(compiler, source)
    })
}

/// Compiles a Java program; the folder with its classes, which is this run's.
pub fn java(source: &Path) -> Result<PathBuf, String> {
    let classes = state_folder().join("classes");
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(&classes).arg(source);
    run(compiler, source)?;
    Ok(classes)
}

/// Where Python's own modules are, whichever its version.
pub fn python_library() -> Result<String, String> {
    let listing = fs::read_dir("/usr/lib").map_err(|error| error.to_string())?;
    let mut names = listing
        .flatten()
        .map(|entry| entry.path().display().to_string());
    let found = names.find(|name| name.starts_with("/usr/lib/python3."));
    found.ok_or_else(|| "Python's modules are missing".into())
}

/// Lets `build` write a program beside its place, and then puts it there.
fn put(source: &Path, build: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let program = output(source)?;
    let fresh = program.with_extension(format!("{}.fresh", process::id()));
    build(&fresh)?;
    fs::rename(&fresh, &program).map_err(|error| format!("{program:?}: {error}"))?;
    Ok(program)
}

fn output(source: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(OUTPUT).map_err(|error| format!("{OUTPUT}: {error}"))?;
    let name = source.file_stem().ok_or("a source file without a name")?;
    Ok(Path::new(OUTPUT).join(name))
}

fn run(mut compiler: Command, source: &Path) -> Result<(), String> {
    let output = compiler.output().map_err(|error| {
        format!(
            "{} is missing ({error}): `make setup` installs it",
            compiler.get_program().display()
        )
    })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{source:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}
