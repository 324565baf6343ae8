//! A seeded clock, network and disk over the same cores that the kernel runs.
#![forbid(unsafe_code)]
