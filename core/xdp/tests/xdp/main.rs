//! The rings and the memory of AF_XDP.
#![forbid(unsafe_code)]

mod geometry;
mod hostile;
mod program;
mod random;
mod receive;
mod transmit;
mod world;
