//! Configuration space, read and written in any pieces (`vfio::Config` has the rules).

use hal::pci::PciFunction;
use mm::io::{Sink, Source, partial};
use sync::{Error, Result};
use vfio::Write;

use super::Device;
use super::info::CONFIG_BYTES;

/// Bytes of a register.
const REGISTER: usize = 4;

/// The register in which `at` lies, which byte of it that is, and how many bytes follow of `len`.
fn place(at: u64, len: usize) -> Option<(u16, usize, usize)> {
    let at = u16::try_from(at)
        .ok()
        .filter(|at| u64::from(*at) < CONFIG_BYTES)?;
    let byte = usize::from(at) % REGISTER;
    Some((at - byte as u16, byte, len.min(REGISTER - byte)))
}

impl Device {
    /// Reads from byte `at` on.
    ///
    /// Errors: `Invalid` beyond the end, those of the program's memory.
    pub(super) fn read_config(&self, at: u64, to: &mut Sink<'_>) -> Result<usize> {
        let mut done = 0;
        while to.remaining() != 0 {
            let Some((register, byte, len)) = place(at + done as u64, to.remaining()) else {
                return partial(done, Error::Invalid);
            };
            let raw = self.shape().config_read(register);
            let word = self.config.lock().read(register, raw).to_le_bytes();
            // tidy: `place` stays within a register.
            match to.put(&word[byte..byte + len]) {
                Ok(count) => done += count,
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    /// Writes from byte `at` on.
    ///
    /// Errors: the same.
    pub(super) fn write_config(&self, at: u64, from: &mut Source<'_>) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            let Some((register, byte, len)) = place(at + done as u64, from.remaining()) else {
                return partial(done, Error::Invalid);
            };
            let (mut value, mut mask) = ([0; REGISTER], [0; REGISTER]);
            // tidy: `place` stays within a register.
            if let Err(error) = from.take_whole(&mut value[byte..byte + len]) {
                return partial(done, error);
            }
            // tidy: likewise.
            mask[byte..byte + len].fill(0xff);
            self.write_register(
                register,
                (u32::from_le_bytes(value), u32::from_le_bytes(mask)),
            );
            done += len;
        }
        Ok(done)
    }

    fn write_register(&self, register: u16, (value, mask): (u32, u32)) {
        let mut config = self.config.lock();
        match config.write(register, value, mask) {
            Write::Command => self.obey_config(&config),
            Write::Kept => {}
            Write::Dropped => self.note_dropped(mask.count_ones() as usize / 8),
        }
    }
}
