//! Builds the shared object out of `src/user` with the compiler that builds everything
//! else and the linker that comes with it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=vdso.ld");
    println!("cargo:rerun-if-changed=vdso.map");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let object = out.join("vdso.o");
    compile(&object);
    link(&object, &out.join("vdso.so"));
}

fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").expect("cargo sets it"))
}

fn compile(object: &Path) {
    let mut rustc = rustc();
    rustc.args([
        "src/user/mod.rs",
        "--crate-name=vdso_user",
        "--crate-type=lib",
        "--edition=2024",
    ]);
    rustc.args([
        "--target=x86_64-unknown-none",
        "--emit=obj",
        "-Copt-level=3",
        "-Cpanic=abort",
    ]);
    rustc.args([
        "-Crelocation-model=pic",
        "-Ccodegen-units=1",
        "-Cdebug-assertions=off",
    ]);
    run(rustc.arg("-o").arg(object));
}

fn link(object: &Path, image: &Path) {
    let mut linker = Command::new(linker());
    linker.args([
        "-flavor",
        "gnu",
        "-shared",
        "-soname=linux-vdso.so.1",
        "-Bsymbolic",
    ]);
    linker.args([
        "--hash-style=both",
        "--build-id=none",
        "--gc-sections",
        "-zmax-page-size=4096",
    ]);
    linker.args([
        "--script=vdso.ld",
        "--version-script=vdso.map",
        "-zrodynamic",
    ]);
    run(linker.arg("-o").arg(image).arg(object));
}

/// The linker in the toolchain's own folder.
fn linker() -> PathBuf {
    let libraries = rustc()
        .args(["--print", "target-libdir"])
        .output()
        .expect("rustc runs");
    let libraries = String::from_utf8(libraries.stdout).expect("a path in UTF-8");
    Path::new(libraries.trim())
        .with_file_name("bin")
        .join("rust-lld")
}

fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?} failed");
}
