//! The bytes are frames from a wire and from clients, and control operations between them:
//! nothing panics, what waits is bounded, no buffer is lost, no frame returns to its sender.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sim::lan::besiege(bytes);
});
