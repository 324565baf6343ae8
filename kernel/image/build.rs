//! Hands the linker script to the linker.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=kernel.ld");
    println!("cargo:rustc-link-arg-bins=-T{folder}/kernel.ld");
    println!("cargo:rustc-link-arg-bins=--build-id=none");
    println!("cargo:rustc-link-arg-bins=-zmax-page-size=0x1000");
}
