//! Registers, for who does not map them: read and written by the largest words that fit.
//!
//! The table of MSI-X is not a program's: it reads as ones, and what is written there is dropped.

use core::ops::Range;

use hal::Mmio;
use mm::io::{Sink, Source, partial};
use sync::{Error, Result};

use super::Device;

/// Bytes of the largest word.
const WORD: usize = 4;
/// Bytes that a call reads or writes at most: a device may be slow.
const CALL_BYTES: usize = 1 << 20;
/// Bytes between two chances for others to run.
const TURN_BYTES: usize = 4096;

/// The largest word that begins at `at` and has `len` bytes at most.
fn word_at(at: usize, len: usize) -> usize {
    let words = [WORD, 2, 1];
    let fits = |bytes: &usize| at.is_multiple_of(*bytes) && len >= *bytes;
    words.into_iter().find(fits).unwrap_or(1)
}

fn read(registers: &Mmio, at: usize, to: &mut [u8]) {
    match to.len() {
        WORD => to.copy_from_slice(&registers.read32(at).to_le_bytes()),
        2 => to.copy_from_slice(&registers.read16(at).to_le_bytes()),
        _ => to.fill(registers.read8(at)),
    }
}

fn write(registers: &Mmio, at: usize, from: &[u8]) {
    match *from {
        [a, b, c, d] => registers.write32(at, u32::from_le_bytes([a, b, c, d])),
        [a, b] => registers.write16(at, u16::from_le_bytes([a, b])),
        [a, ..] => registers.write8(at, a),
        [] => {}
    }
}

impl Device {
    /// Reads from byte `at` of a base address on, to its end at most.
    ///
    /// Errors: `Invalid` for what is not there, `Io` while the device does not answer, those of the
    /// program's memory.
    pub(super) fn read_bar(&self, bar: usize, at: u64, to: &mut Sink<'_>) -> Result<usize> {
        let (registers, range) = self.part(bar, at, to.remaining())?;
        let (mut at, mut done) = (range.start, 0);
        while at < range.end {
            let len = word_at(at, range.end - at);
            let mut word = [0xff; WORD];
            if !self.is_table(bar, at, len) {
                // tidy: `len` is a word at most.
                read(registers, at, &mut word[..len]);
            }
            // tidy: `len` is a word at most.
            if let Err(error) = to.put_whole(&word[..len]) {
                return partial(done, error);
            }
            (at, done) = (at + len, done + len);
            let_others_run(at);
        }
        Ok(done)
    }

    /// Writes from byte `at` of a base address on, to its end at most.
    ///
    /// Errors: the same; `NotPermitted` for what the kernel keeps.
    pub(super) fn write_bar(&self, bar: usize, at: u64, from: &mut Source<'_>) -> Result<usize> {
        let (registers, range) = self.part(bar, at, from.remaining())?;
        if range.start < self.first_writable(bar) {
            return Err(Error::NotPermitted);
        }
        let (mut at, mut done) = (range.start, 0);
        while at < range.end {
            let len = word_at(at, range.end - at);
            let mut word = [0; WORD];
            // tidy: `len` is a word at most.
            if let Err(error) = from.take_whole(&mut word[..len]) {
                return partial(done, error);
            }
            match self.is_table(bar, at, len) {
                true => self.note_dropped(len),
                // tidy: `len` is a word at most.
                false => write(registers, at, &word[..len]),
            }
            (at, done) = (at + len, done + len);
            let_others_run(at);
        }
        Ok(done)
    }

    /// The registers, and which bytes of them are there of `len` from `at` on.
    fn part(&self, bar: usize, at: u64, len: usize) -> Result<(&'static Mmio, Range<usize>)> {
        let registers = self.shape().bar(bar).ok_or(Error::Invalid)?;
        let start = usize::try_from(at).ok();
        let start = start.filter(|start| *start < registers.bytes());
        let start = start.ok_or(Error::Invalid)?;
        if !self.config.lock().answers() {
            return Err(Error::Io);
        }
        let end = start.saturating_add(len.min(CALL_BYTES));
        let end = end.min(registers.bytes());
        Ok((registers, start..end))
    }

    fn is_table(&self, bar: usize, at: usize, len: usize) -> bool {
        let table = self.shape().msix.as_ref();
        let table = table.filter(|table| table.bar == bar);
        table.is_some_and(|table| at < table.bytes.end && at + len > table.bytes.start)
    }
}

fn let_others_run(at: usize) {
    if at.is_multiple_of(TURN_BYTES) {
        sched::resched_point();
    }
}
