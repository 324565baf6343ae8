//! Requests on a simulated disk.

mod limits;
mod order;
mod recovery;
mod rig;
mod transfer;
