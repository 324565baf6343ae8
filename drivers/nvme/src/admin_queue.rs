//! The admin queue's rings: one command at a time, waited for by looking.
//!
//! An entry whose command has ended is overwritten with zeroes, which is the deletion of a queue that there cannot be: so
//! whoever rings the doorbell of a queue that is not its own has the controller refuse that.

use base::Duration;
use hal::DmaSource;

use crate::entry::{Answer, Entry, StatusField};
use crate::error::Error;
use crate::machine::Clock;
use crate::registers::Registers;
use crate::ring::Ring;

/// A command that has not ended for so long never will.
const PATIENCE: Duration = Duration::from_secs(10);
/// Entries of the queue.
const ENTRIES: u16 = 32;

/// The queue.
pub(crate) struct AdminQueue {
    ring: Ring,
    next_id: u16,
}

impl AdminQueue {
    pub(crate) fn new(memory: &impl DmaSource, registers: &Registers) -> Result<Self, Error> {
        let doorbells = registers.doorbells(0, None).ok_or(Error::Absent)?;
        let ring = Ring::new(memory, 0, ENTRIES, doorbells)?;
        Ok(Self { ring, next_id: 0 })
    }

    /// Tells the controller, which is off, where it lies; nothing of what it held before is left.
    pub(crate) fn place(&mut self, registers: &Registers) -> Result<(), Error> {
        self.ring.clear();
        let (submissions, completions) = self.ring.spans().ok_or(Error::OutOfMemory)?;
        registers.place_admin(ENTRIES, submissions, completions);
        Ok(())
    }

    /// Whether the controller says that it lies there.
    pub(crate) fn is_placed(&self, registers: &Registers) -> bool {
        let is_there =
            |(submissions, completions)| registers.admin_is_at(ENTRIES, submissions, completions);
        self.ring.spans().is_some_and(is_there)
    }

    /// Sends a command and waits for its end; returns the status and what it says beside.
    ///
    /// After an error the controller is to be reset: the command may still be under way.
    pub(crate) fn run(
        &mut self,
        entry: &Entry,
        clock: &impl Clock,
    ) -> Result<(StatusField, u32), Error> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let place = self.ring.push(entry, id);
        self.ring.publish();
        let until = clock.now() + PATIENCE;
        let answer = loop {
            if let Some(answer) = self.ring.take().map_err(|_| Error::Broken)? {
                break answer;
            }
            if clock.now() >= until {
                return Err(Error::TimedOut);
            }
            clock.pause();
        };
        self.ring.erase(place);
        let Answer { status, result, .. } = answer;
        match answer.id == id {
            true => Ok((status, result)),
            false => Err(Error::Broken),
        }
    }

    /// The controller has forgotten it.
    pub(crate) fn retire(&mut self) {
        self.ring.retire();
    }
}
