//! Words of memory, and the threads that wait for them.

#![forbid(unsafe_code)]

mod codes;
mod inheritance;
mod model;
mod random;
mod words;
mod world;
