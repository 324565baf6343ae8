//! Pipes beside plain queues of bytes.

#![forbid(unsafe_code)]

mod edges;
mod model;
mod random;
mod ring;
mod room;
mod world;
