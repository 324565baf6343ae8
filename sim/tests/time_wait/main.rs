//! Connections that are over: what they cost those that come after them.

mod crowd;
mod peer;
mod rows;
