//! Resetting a function by itself (PCI Express 3.0, 6.6.2; PCI's Advanced Features, 1.3): it
//! forgets all that it was told, its header included.

use hal::pci::PciFunction;
use sync::{Error, Result, Wait, WaitQueue};

use super::{COMMAND, Device};
use crate::group::RESET_TIME;
use crate::shape::{Reset, Shape};

/// In the control register of PCI Express; its neighbour's bits are cleared by ones.
const EXPRESS_CONTROL: u16 = 8;
const EXPRESS_RESET: u32 = 1 << 15;
/// Of Advanced Features, the byte behind its capabilities.
const ADVANCED_CONTROL: u16 = 4;
const ADVANCED_RESET: u32 = 1 << 0;

impl Reset {
    /// Has the function begin.
    pub fn begin(self, shape: &Shape) {
        match self {
            Self::Express(offset) => {
                let at = offset + EXPRESS_CONTROL;
                let control = shape.config_read(at) & 0xffff;
                shape.config_write(at, control | EXPRESS_RESET);
            }
            Self::Advanced(offset) => shape.config_write(offset + ADVANCED_CONTROL, ADVANCED_RESET),
        }
    }
}

impl Device {
    /// Resets the function; what the kernel knows of it stays as it is.
    ///
    /// Errors: `Invalid` if it cannot be reset by itself, `WrongDevice` if it is revoked.
    pub(super) fn reset(&self) -> Result<()> {
        let reset = self.shape().reset.ok_or(Error::Invalid)?;
        let _held = self.resetting.lock();
        match &self.keeper {
            Some(keeper) => keeper.reset(|| self.reset_alone(reset)),
            None => self.reset_alone(reset),
        }
    }

    fn reset_alone(&self, reset: Reset) -> Result<()> {
        let shape = self.shape();
        if self.config.lock().is_revoked() {
            return Err(Error::WrongDevice);
        }
        shape.config_write(COMMAND, 0);
        reset.begin(shape);
        let until = Wait::UNINTERRUPTIBLE.until(mach::time::now() + RESET_TIME);
        // Nobody wakes it: it ends with the time.
        _ = WaitQueue::new().wait(until, || None::<()>);
        shape.restore();
        let restored = self.with_registers(|| self.interrupts.lock().restore(shape));
        if restored.is_err() {
            // It was revoked meanwhile.
            self.obey_config(&self.config.lock());
        }
        restored
    }
}
