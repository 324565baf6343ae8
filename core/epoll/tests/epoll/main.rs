//! Sets and files whose readiness a test decides.

#![forbid(unsafe_code)]

mod edges;
mod leftovers;
mod model;
mod observers;
mod random;
mod world;
