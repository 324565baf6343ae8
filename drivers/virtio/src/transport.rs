//! What all transports do: the order of initialisation, on registers that differ.

use hal::Mmio;
use virtq::Addresses;

use crate::{Error, Features, MmioTransport, PciTransport};

/// "This event raises no interrupt" (section 4.1.5.1.2.1).
pub const NO_VECTOR: u16 = 0xffff;

/// Status bits (section 2.1).
const ACKNOWLEDGE: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;
const NEEDS_RESET: u8 = 64;
const FAILED: u8 = 128;

/// A reset takes at most this many looks at the status.
const RESET_LOOKS_MAX: u32 = 1_000_000;

/// The type of a device (section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Network card.
    Net,
    /// Block device.
    Block,
    /// Console: streams of bytes.
    Console,
    /// Source of randomness.
    Entropy,
    /// Balloon: memory that the host has back.
    Balloon,
    /// 9P volume.
    NineP,
    /// File system that a daemon of the host's serves.
    FileSystem,
    /// Another one, by its number.
    Other(u32),
}

impl Kind {
    pub(crate) fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Net,
            2 => Self::Block,
            3 => Self::Console,
            4 => Self::Entropy,
            5 => Self::Balloon,
            9 => Self::NineP,
            26 => Self::FileSystem,
            other => Self::Other(other),
        }
    }
}

/// A device's registers.
#[derive(Debug)]
pub enum Transport {
    /// Behind a PCI function.
    Pci(PciTransport),
    /// In a window of their own.
    Mmio(MmioTransport),
}

/// Tells the device about one queue: a single register write.
#[derive(Debug)]
pub struct Doorbell {
    pub(crate) register: Mmio,
    pub(crate) queue: u16,
    pub(crate) wide: bool,
}

impl Doorbell {
    /// Rings.
    #[inline]
    pub fn ring(&self) {
        if self.wide {
            self.register.write32(0, self.queue.into());
        } else {
            self.register.write16(0, self.queue);
        }
    }
}

macro_rules! on_both {
    ($transport:expr, $registers:ident => $work:expr) => {
        match $transport {
            Transport::Pci($registers) => $work,
            Transport::Mmio($registers) => $work,
        }
    };
}

impl Transport {
    /// The device's type.
    pub fn kind(&self) -> Kind {
        on_both!(self, registers => registers.kind())
    }

    /// The device's own configuration (section 2.5).
    pub fn config(&self) -> &Mmio {
        on_both!(self, registers => registers.config())
    }

    /// Resets the device and agrees on features: all of `needed`, and what it offers of
    /// those that `wanted` picks. Returns the agreed bits. Memory has the address that its
    /// source gave it, so a device that wants addresses of the platform always gets them.
    pub fn negotiate(&self, needed: u64, wanted: impl FnOnce(u64) -> u64) -> Result<u64, Error> {
        let needed = needed | Features::VERSION_1.bits();
        self.reset()?;
        self.set_status(ACKNOWLEDGE | DRIVER);
        let offered = on_both!(self, registers => registers.offered_features());
        if offered & needed != needed {
            self.set_status(FAILED);
            return Err(Error::MissingFeatures { offered, needed });
        }
        let always = needed | Features::ACCESS_PLATFORM.bits();
        let agreed = offered & (always | wanted(offered));
        on_both!(self, registers => registers.accept_features(agreed));
        self.set_status(ACKNOWLEDGE | DRIVER | FEATURES_OK);
        if self.status() & FEATURES_OK == 0 {
            self.set_status(FAILED);
            return Err(Error::FeaturesRefused(agreed));
        }
        Ok(agreed)
    }

    fn reset(&self) -> Result<(), Error> {
        self.set_status(0);
        for _ in 0..RESET_LOOKS_MAX {
            if self.status() == 0 {
                return Ok(());
            }
            core::hint::spin_loop();
        }
        Err(Error::ResetStuck)
    }

    fn status(&self) -> u8 {
        on_both!(self, registers => registers.status())
    }

    fn set_status(&self, status: u8) {
        on_both!(self, registers => registers.set_status(status));
    }

    /// The most entries that queue `index` may have; 0 if it does not exist.
    pub fn queue_size_max(&self, index: u16) -> u16 {
        on_both!(self, registers => registers.queue_size_max(index))
    }

    /// Tells the device where queue `index` lies and which interrupt vector its
    /// completions raise ([`NO_VECTOR`] for none; ignored where there are no vectors).
    pub fn add_queue(
        &self,
        index: u16,
        size: u16,
        at: Addresses,
        vector: u16,
    ) -> Result<Doorbell, Error> {
        if size > self.queue_size_max(index) {
            return Err(Error::NoQueue(index));
        }
        on_both!(self, registers => registers.add_queue(index, size, at, vector))
    }

    /// Says which interrupt vector a change of the device's configuration raises, until it is negotiated with
    /// again; false if the device takes none. Where there are no vectors, the device's line tells of it anyway.
    pub fn set_config_vector(&self, vector: u16) -> bool {
        match self {
            Self::Pci(registers) => registers.set_config_vector(vector),
            Self::Mmio(_) => true,
        }
    }

    /// Stops the device: it touches no memory any more. A hypervisor's reset is done when
    /// the register's write is.
    pub fn stop(&self) {
        self.set_status(0);
    }

    /// Whether the device works: it was started and has not failed.
    pub fn is_running(&self) -> bool {
        self.status() & (DRIVER_OK | NEEDS_RESET) == DRIVER_OK
    }

    /// The driver is ready; the device may work from here on.
    pub fn start(&self) {
        self.set_status(ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK);
    }
}
