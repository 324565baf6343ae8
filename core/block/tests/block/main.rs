//! Requests on a simulated disk.

mod limits;
mod order;
mod pages;
mod recovery;
mod rig;
mod transfer;
