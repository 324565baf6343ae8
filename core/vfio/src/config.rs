//! Configuration space as a program sees it.
//!
//! What decides where a device answers, how it interrupts and what lies behind it stays the
//! kernel's. Of all that a program writes, two bits reach the device: whether it answers
//! at its base addresses, and whether it reaches out by itself. Base addresses are remembered,
//! so that a program can find their sizes by writing ones, and lead nowhere. The rest is read from
//! the device and cannot be changed. A function that is revoked does neither of the two any more.
//!
//! Registers are of four bytes; a write comes with a mask of the bits that it is about.

const ID: u16 = 0x00;
const COMMAND: u16 = 0x04;
const BARS: u16 = 0x10;
const BARS_END: u16 = 0x28;
const ROM: u16 = 0x30;
const INTERRUPT: u16 = 0x3c;

/// In the command register: it answers, it reaches out, it leaves its line alone.
const MEMORY: u16 = 1 << 1;
const MASTER: u16 = 1 << 2;
const LINE_OFF: u16 = 1 << 10;

/// A base address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Bytes, a power of two.
    pub bytes: u64,
    /// The lowest four bits as the device has them: its kind.
    pub kind: u32,
}

impl Bar {
    fn is_64_bit(self) -> bool {
        self.kind >> 1 & 3 == 2
    }
}

/// What became of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    /// The command register of the device is now to be [`Config::command`].
    Command,
    /// It is remembered here.
    Kept,
    /// It changes nothing.
    Dropped,
}

/// A function's configuration space.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    id: u32,
    command: u16,
    is_revoked: bool,
    /// What the program wrote, and which bits of that there are.
    bars: [(u32, u32); 6],
    line: u8,
    /// The registers in which a message's address and data stand.
    message: Option<(u16, u16)>,
}

impl Config {
    /// Of a function that answers and does not reach out, with this identification and these base addresses. Its message signalled
    /// interrupt, if it has one, is told where to go in `message` (first register, end).
    pub fn new(id: u32, bars: [Option<Bar>; 6], message: Option<(u16, u16)>) -> Self {
        let mut words = [(0, 0); 6];
        let mut index = 0;
        while let Some(word) = words.get_mut(index) {
            let mut step = 1;
            if let Some(bar) = bars[index] {
                let mask = !(bar.bytes - 1);
                *word = (bar.kind, mask as u32 & !0xf);
                if let (true, Some(high)) = (bar.is_64_bit(), words.get_mut(index + 1)) {
                    *high = (0, (mask >> 32) as u32);
                    step = 2;
                }
            }
            index += step;
        }
        Self {
            id,
            command: LINE_OFF | MEMORY,
            is_revoked: false,
            bars: words,
            line: 0,
            message,
        }
    }

    /// What the device's command register is to be.
    pub fn command(&self) -> u16 {
        self.command
    }

    /// Whether the device answers at its base addresses.
    pub fn answers(&self) -> bool {
        self.command & MEMORY != 0
    }

    /// The function is the program's no more: it neither answers nor reaches out, for good.
    pub fn revoke(&mut self) {
        self.command = LINE_OFF;
        self.is_revoked = true;
    }

    /// Whether it is not the program's any more.
    pub fn is_revoked(&self) -> bool {
        self.is_revoked
    }

    /// The register at `offset`, where the device has `raw`.
    pub fn read(&self, offset: u16, raw: u32) -> u32 {
        match offset {
            ID => self.id,
            COMMAND => raw & 0xffff_0000 | u32::from(self.command),
            BARS..BARS_END => self.bars[usize::from((offset - BARS) / 4)].0,
            ROM => 0,
            INTERRUPT => raw & 0xffff_0000 | u32::from(self.line),
            _ if self.is_message(offset) => 0,
            _ => raw,
        }
    }

    /// Writes those bits of the register at `offset` that are in `mask`.
    pub fn write(&mut self, offset: u16, value: u32, mask: u32) -> Write {
        match offset {
            _ if self.is_revoked => Write::Dropped,
            COMMAND if mask & 0xffff != 0 => {
                let changes = mask as u16 & (MEMORY | MASTER);
                self.command = self.command & !changes | value as u16 & changes;
                Write::Command
            }
            BARS..BARS_END => {
                let (word, bits) = &mut self.bars[usize::from((offset - BARS) / 4)];
                let changes = mask & *bits;
                *word = *word & !changes | value & changes;
                if *bits == 0 {
                    Write::Dropped
                } else {
                    Write::Kept
                }
            }
            INTERRUPT if mask & 0xff != 0 => {
                let changes = mask as u8;
                self.line = self.line & !changes | value as u8 & changes;
                Write::Kept
            }
            _ => Write::Dropped,
        }
    }

    fn is_message(&self, offset: u16) -> bool {
        self.message
            .is_some_and(|(first, end)| (first..end).contains(&offset))
    }
}
