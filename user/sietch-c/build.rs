//! Gives the shared library its name: cargo's has no hyphen.
#![forbid(unsafe_code)]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsietch-io.so.0");
}
