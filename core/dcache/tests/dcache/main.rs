//! The cache of names beside file systems that a test makes.

#![forbid(unsafe_code)]

mod looks;
mod model;
mod pins;
mod random;
mod world;
