//! Relations beside plain lists, and in all orders in which CPUs may change them.

#![forbid(unsafe_code)]

mod model;
mod numbers;
mod random;
mod sweeps;
