//! Whatever a program writes to the device of `dladm` and `flowadm`: there is one answer
//! that can be read, and what is refused has changed nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sim::lan::fuzz_requests(bytes);
});
