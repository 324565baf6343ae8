//! The bytes are what a hostile peer sends and what local programs do meanwhile: the stack
//! neither panics nor leaks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sim::besiege(bytes);
});
