//! The packer reads the headers of any file without a panic.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = cli::pack::elf::needs(Path::new("fuzzed"), bytes);
});
