//! The driver against a model of the card.

mod bring_up;
mod filters;
mod frames;
mod hostile;
mod interrupts;
mod model;
mod model_pools;
mod model_rx;
mod model_tx;
mod offload;
mod open;
mod qemu;
mod receive;
mod rig;
mod sending;
mod spread;
mod transmit;
mod vf_hostile;
mod vfs;
mod watch;
