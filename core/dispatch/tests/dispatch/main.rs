//! The dispatcher beside plain lists, with CPUs of which a test says where they stand.

#![forbid(unsafe_code)]

mod fair;
mod model;
mod placement;
mod random;
mod realtime;
mod sending;
mod states;
mod stealing;
mod world;
