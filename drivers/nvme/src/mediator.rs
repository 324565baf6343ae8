//! Whose the admin queue is: the driver's, or that of somebody who keeps it for the driver.
//!
//! # Problem
//! A program that drives a virtual function needs a few admin commands: to make its queues, to ask for its namespace.
//! Others reach what is not its own: Namespace Attachment takes another controller's namespace, where the
//! controller does not refuse that.
//!
//! # Idea
//! The kernel has the admin queue and all registers but the doorbells ([`AdminKeeper`](crate::AdminKeeper)); the program asks it
//! for each command. The driver is the same: [`Access`] says how it gets to the controller.

use alloc::sync::Arc;

use hal::Mmio;

use crate::error::Error;

/// How the driver gets to the controller.
pub enum Access {
    /// By all of its registers.
    Whole(Mmio),
    /// By its doorbells, and for the rest by somebody else.
    Mediated {
        /// From the first doorbell on (offset 0x1000 of the registers).
        doorbells: Mmio,
        /// Who does the rest.
        mediator: Arc<dyn Mediator>,
    },
}

/// Has a controller's admin queue, and its registers but for the doorbells.
pub trait Mediator: Send + Sync {
    /// Reads a register; ones if the controller is not there.
    fn register(&self, offset: usize) -> u32;

    /// Begins to bring the controller up, with an empty admin queue, or to take it down. The status register says how that went.
    fn enable(&self, is_on: bool);

    /// Has an admin command carried out: the submission, whose identifier is not looked at. Returns the status field without
    /// the phase, and the first word of the completion.
    ///
    /// Errors: `NotPermitted`; after any other the controller is to be reset.
    fn run(&self, command: [u64; 8]) -> Result<(u16, u32), Error>;
}
