//! `sietch compose`: machines that belong together, as a `compose.yaml` describes them.
//!
//! A file ([`file`]) is read into a [`Project`], whose services ([`service`]) become lines of `sietch run`: there is nothing
//! that a user could not type, and whether a service is healthy is what its machine's own session says. What the file
//! says and Sietch does not have is named, all of it in one sentence, and nothing is started then ([`document`]).
//! Services start in the order of their dependencies ([`order`]) and stop in the opposite one.
//!
//! Nothing is remembered besides: a machine whose line is the same as before is left as it is, another one is
//! replaced, and what belongs to a project is told by names.

pub mod document;
pub mod file;
mod flags;
mod healthcheck;
pub mod order;
pub mod service;
mod variables;

pub use file::Project;
