//! Connections that begin, and those that are over and meet them.

mod crowd;
mod opening;
mod peer;
mod rows;
