//! What `ip` shows and changes: a file for each kind of object, with its messages and commands.
//!
//! Each has a `message` of it, `DumpFilter`, which says what of it a dump shows, and what the verbs do
//! that it knows. Which of these a request means is for `serve` to say.

pub(crate) mod address;
pub(crate) mod link;
pub(crate) mod neighbour;
pub(crate) mod route;
pub(crate) mod rule;
