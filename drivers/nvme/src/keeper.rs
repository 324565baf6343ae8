//! The admin queue of a controller whose I/O queues are somebody else's, who is not trusted.
//!
//! # Idea
//! Who has the I/O queues, a program, has the doorbells: those of the admin queue lie in the same page. It has the device move
//! blocks to and from all that the device reaches, also the rings of the admin queue, as far as the device may. So
//!
//! - submissions lie in memory that the device only reads ([`DmaRequest::read_only`](hal::DmaRequest::read_only)): nobody but us writes commands;
//! - what lies there is a command that [`permitted`] lets pass, zeroes, or, while it is written, a part of one and zeroes: a
//!   doorbell that rings too early or again has the controller carry out that;
//! - completions are taken for what a device says: they may be forged. A wrong one ends in a reset of the controller.
//!
//! # Invariants
//! - **Own**: each command that is permitted, and each part of one with zeroes for the rest, changes nothing but queues and
//!   settings of this controller. The addresses in it are not checked: what the device does not reach it does not reach.
//!
//! Not here: events, aborts, logs, features but the number of queues. Nobody is asked by the controller.

use hal::{DmaSource, Mmio};

use crate::admin_queue::AdminQueue;
use crate::entry::{Entry, admin, identify};
use crate::error::Error;
use crate::machine::Clock;
use crate::mediator::Access;
use crate::registers::{Registers, Status};

/// See the module.
pub struct AdminKeeper<C> {
    registers: Registers,
    queue: AdminQueue,
    clock: C,
    is_up: bool,
}

impl<C: Clock> AdminKeeper<C> {
    /// Of a controller with these registers, which is left as it is. The rings are made of `memory`, which gives the device no
    /// more than the requests say.
    pub fn new(registers: Mmio, memory: &impl DmaSource, clock: C) -> Result<Self, Error> {
        let registers = Registers::new(Access::Whole(registers))?;
        Ok(Self {
            queue: AdminQueue::new(memory, &registers)?,
            registers,
            clock,
            is_up: false,
        })
    }

    /// Resets the controller and brings it up with an empty admin queue.
    pub fn enable(&mut self) -> Result<(), Error> {
        self.disable()?;
        self.queue.place(&self.registers)?;
        self.registers.enable();
        let up = self.registers.wait_for(Status::Ready, &self.clock);
        // Who reset it meanwhile made it forget where the queue lies.
        self.is_up = up.is_ok() && self.queue.is_placed(&self.registers);
        match self.is_up {
            true => Ok(()),
            false => self.disable().and(up).and(Err(Error::Absent)),
        }
    }

    /// Takes it down: it forgets all queues.
    pub fn disable(&mut self) -> Result<(), Error> {
        self.is_up = false;
        self.registers.disable();
        self.registers.wait_for(Status::Off, &self.clock)
    }

    /// The function was reset.
    pub fn was_reset(&mut self) {
        self.is_up = false;
    }

    /// Carries out a command if it is permitted; returns its status field and the first word of its completion.
    ///
    /// Errors: `NotPermitted`, and nothing was sent; `NotReady` if it is not up. After any other it was reset.
    pub fn run(&mut self, command: [u64; 8]) -> Result<(u16, u32), Error> {
        let entry = permitted(command).ok_or(Error::NotPermitted)?;
        // It may have been reset from elsewhere.
        if !self.is_up || self.registers.status() != Status::Ready {
            return Err(Error::NotReady);
        }
        match self.queue.run(&entry, &self.clock) {
            Ok((status, result)) => Ok((status.0, result)),
            Err(error) => self.disable().and(Err(error)),
        }
    }

    /// The device reaches the rings no more: they are freed with this.
    pub fn retire(&mut self) {
        self.queue.retire();
    }
}

/// The command as it may be sent, if it may be.
fn permitted(command: [u64; 8]) -> Option<Entry> {
    let [first, _, _, page, pages, words_10, words_12, _] = command;
    let both = |quad: u64| [quad as u32, (quad >> 32) as u32];
    let ([_, namespace], [word_10, word_11]) = (both(first), both(words_10));
    let entry = |words| Entry {
        page,
        ..Entry::admin(first as u8, 0, words)
    };
    let has_queue = word_10 as u16 != 0;
    let entry = match (first as u8, word_10, word_11) {
        (admin::IDENTIFY, identify::NAMESPACE | identify::CONTROLLER | identify::ACTIVE, 0) => {
            Entry {
                namespace,
                ..entry([word_10, 0, 0])
            }
        }
        (admin::SET_FEATURES, admin::FEATURE_QUEUES, _) => {
            Entry::admin(admin::SET_FEATURES, 0, [word_10, word_11, 0])
        }
        (admin::CREATE_COMPLETIONS, ..) if has_queue => entry([word_10, word_11, 0]),
        // Completions go to a queue of its own.
        (admin::CREATE_SUBMISSIONS, ..) if has_queue && word_11 >> 16 != 0 => {
            entry([word_10, word_11, 0])
        }
        (admin::DELETE_SUBMISSIONS | admin::DELETE_COMPLETIONS, ..) if has_queue => {
            Entry::admin(first as u8, 0, [word_10 & 0xffff, 0, 0])
        }
        (admin::DOORBELL_BUFFER, 0, 0) => Entry {
            pages,
            ..entry([0; 3])
        },
        _ => return None,
    };
    // What was not looked at is zero, so nothing else is in it but its identifier.
    let mut said = command;
    said[0] &= !0xffff_0000;
    (words_12 == 0 && entry.quads(0) == said).then_some(entry)
}
