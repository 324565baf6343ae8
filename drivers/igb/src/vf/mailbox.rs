//! A virtual function's half of the mailbox (7.10.2.9.1). What the physical function did is shown
//! by bits that are cleared when they are read, so they are kept here until they are used.

use hal::Registers;

use crate::Error;
use crate::message::{Message, WORDS};
use crate::registers_pools::{
    VF_HOLDS, VF_MAILBOX, VF_MAILBOX_MEMORY, VF_PF_IN_RESET, VF_PF_SENT, VF_PF_TAKEN, VF_REQUEST,
    VF_TAKEN,
};

/// Reads of a register until the physical function is given up; each takes a microsecond on
/// the bus.
const READS_MAX: u32 = 1_000_000;
const SEEN: u32 = VF_PF_SENT | VF_PF_TAKEN;

#[derive(Default)]
pub(super) struct Mailbox {
    /// What was read and not used yet.
    seen: u32,
}

impl Mailbox {
    fn read(&mut self, registers: &impl Registers) -> u32 {
        let state = registers.read32(VF_MAILBOX);
        self.seen |= state & SEEN;
        state
    }

    /// Waits until the physical function is not being reset.
    pub(super) fn await_physical(&mut self, registers: &impl Registers) -> Result<(), Error> {
        let mut is_there = || self.read(registers) & VF_PF_IN_RESET == 0;
        let is_there = (0..READS_MAX).any(|_| is_there());
        // What it said to who had the function before is nobody's.
        self.seen = 0;
        is_there.then_some(()).ok_or(Error::Unanswered)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(
        &mut self,
        registers: &impl Registers,
        request: &Message,
    ) -> Result<Message, Error> {
        self.hold(registers)?;
        self.seen = 0;
        for (at, word) in request.iter().enumerate() {
            registers.write32(VF_MAILBOX_MEMORY + 4 * at, *word);
        }
        registers.write32(VF_MAILBOX, VF_REQUEST);
        self.wait(registers, VF_PF_TAKEN)?;
        self.wait(registers, VF_PF_SENT)?;
        self.hold(registers)?;
        let word = |at: usize| registers.read32(VF_MAILBOX_MEMORY + 4 * at);
        let answer: [u32; WORDS] = core::array::from_fn(word);
        registers.write32(VF_MAILBOX, VF_TAKEN);
        Ok(answer)
    }

    fn wait(&mut self, registers: &impl Registers, bit: u32) -> Result<(), Error> {
        let mut has_come = || {
            self.read(registers);
            self.seen & bit != 0
        };
        let has_come = (0..READS_MAX).any(|_| has_come());
        self.seen &= !bit;
        has_come.then_some(()).ok_or(Error::Unanswered)
    }

    /// Holds the memory.
    fn hold(&mut self, registers: &impl Registers) -> Result<(), Error> {
        let mut is_ours = || {
            registers.write32(VF_MAILBOX, VF_HOLDS);
            self.read(registers) & VF_HOLDS != 0
        };
        let is_ours = (0..READS_MAX).any(|_| is_ours());
        is_ours.then_some(()).ok_or(Error::Unanswered)
    }
}
