//! The rings and rules of io_uring.
#![forbid(unsafe_code)]

mod hostile;
mod ring;
mod rules;
mod world;
