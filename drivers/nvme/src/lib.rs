//! Disks over NVM Express (base specification 2.0, NVM command set 1.0).
//!
//! # Idea
//! A controller has an admin queue, by which it is set up, and queues for reads and writes. Each
//! namespace is a disk, and has queues of its own, one for each CPU as far as the controller has so many
//! ([`channel`]). So a disk that does not answer is stopped by making the controller forget *its* queues, which ends
//! their commands and leaves its neighbours alone; only where that fails the controller is reset
//! ([`controller`]).
//!
//! A reset ends the queues of all namespaces. Each queue knows the generation in which it was made; in a later
//! one it says that it is broken, and its disk is started anew by those that wait for it, on the way that
//! every disk goes.
//!
//! Memory is told by pages ([`slots`]): a list for each command under way, made with the queue. Writes can be
//! forced, so `block` sends no flush behind them. Where the controller offers it, doorbells are in memory
//! ([`shadow`]).
//!
//! # Invariants
//! - **Slot**: a command's identifier is its slot, and belongs to it from its submission until its end was
//!   taken, or the queue forgotten. An end with another identifier breaks the queue.
//! - **Room**: fewer commands are under way than a ring has places, so nothing overtakes.
//! - **Apart**: a queue's number is made known again only by its own disk, after that has retired the queue of
//!   before. So a doorbell that rings late rings for nobody.
//!
//! Lock order: a queue's (the kernel's) after the controller's, which may be held as long as an admin command takes.
//!
//! Not here: which requests, time-outs of them, order (`block`); events that the controller reports by itself:
//! the size of a namespace is asked for ([`block::Control::refresh`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admin;
mod admin_queue;
mod channel;
mod controller;
mod entry;
mod error;
mod identify;
mod keeper;
mod machine;
mod mediator;
mod namespace;
mod registers;
mod ring;
mod shadow;
mod slots;
mod virtualization;

pub use controller::{Controller, Wanted};
pub use error::Error;
pub use identify::Identity;
pub use keeper::AdminKeeper;
pub use machine::{Clock, Machine};
pub use mediator::{Access, Mediator};
pub use namespace::Namespace;
pub use virtualization::Secondary;

use hal::pci::PciFunction;

/// Class, subclass and programming interface of NVM Express.
const CLASS: u32 = 0x01_08_02;
const CLASS_REGISTER: u16 = 0x08;

/// Whether a function is a controller of this kind.
pub fn is_for(function: &impl PciFunction) -> bool {
    function.config_read(CLASS_REGISTER) >> 8 == CLASS
}
