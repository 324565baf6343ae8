//! The bytes are what a hostile IPv6 link sends and what local programs do meanwhile: the
//! stack neither panics nor leaks, and keeps no more than it says.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sim::besiege_v6(bytes);
});
