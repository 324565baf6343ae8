//! The controller's registers (section 3.1 of the base specification, 2.0).

use core::sync::atomic::{Ordering, fence};

use base::Duration;
use hal::{Mmio, Span};

use crate::error::Error;
use crate::shadow::{Shadow, Shadows};

const CAP: usize = 0x00;
const VS: usize = 0x08;
const CC: usize = 0x14;
const CSTS: usize = 0x1c;
const AQA: usize = 0x24;
const ASQ: usize = 0x28;
const ACQ: usize = 0x30;
/// Where doorbells begin.
const DOORBELLS: usize = 0x1000;

const CC_ENABLE: u32 = 1;
/// Entries of 64 and 16 bytes, pages of 4096, the NVM command set.
const CC_SHAPE: u32 = 6 << 16 | 4 << 20;
const CSTS_READY: u32 = 1 << 0;
const CSTS_FATAL: u32 = 1 << 1;
/// What a function that is not there reads as.
const ABSENT: u32 = u32::MAX;

/// What the controller can do, as its first register says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    /// Entries of a queue at most; two at least.
    pub entries_max: u32,
    /// It is ready, or not any more, within this time.
    pub patience: Duration,
    /// Bytes from one doorbell to the next.
    pub stride: usize,
}

impl Capabilities {
    fn parse(cap: u64) -> Result<Self, Error> {
        let smallest_page = cap >> 48 & 0xf;
        let has_nvm = cap >> 37 & 1 != 0;
        let last_entry = cap as u32 & 0xffff;
        if smallest_page != 0 || !has_nvm || last_entry == 0 {
            return Err(Error::NotSupported);
        }
        Ok(Self {
            entries_max: last_entry + 1,
            patience: Duration::from_millis(500 * ((cap >> 24 & 0xff) + 1)),
            stride: 4 << (cap >> 32 & 0xf),
        })
    }
}

/// How the controller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// It takes no commands.
    Off,
    /// It takes commands.
    Ready,
    /// It says that it cannot go on.
    Fatal,
    /// It is not there.
    Absent,
}

/// All registers.
pub(crate) struct Registers {
    mmio: Mmio,
    pub capabilities: Capabilities,
}

impl Registers {
    pub(crate) fn new(mmio: Mmio) -> Result<Self, Error> {
        if mmio.bytes() < DOORBELLS + 8 || mmio.read32(CSTS) == ABSENT {
            return Err(Error::Absent);
        }
        let (low, high) = (mmio.read32(CAP), mmio.read32(CAP + 4));
        let capabilities = Capabilities::parse(u64::from(high) << 32 | u64::from(low))?;
        Ok(Self { mmio, capabilities })
    }

    /// Major, minor and tertiary number, the major in the highest two bytes.
    pub(crate) fn version(&self) -> u32 {
        self.mmio.read32(VS)
    }

    pub(crate) fn status(&self) -> Status {
        match self.mmio.read32(CSTS) {
            ABSENT => Status::Absent,
            word if word & CSTS_FATAL != 0 => Status::Fatal,
            word if word & CSTS_READY != 0 => Status::Ready,
            _ => Status::Off,
        }
    }

    pub(crate) fn disable(&self) {
        let control = self.mmio.read32(CC);
        self.mmio.write32(CC, control & !CC_ENABLE);
    }

    pub(crate) fn enable(&self) {
        self.mmio.write32(CC, CC_SHAPE | CC_ENABLE);
    }

    /// Says where the admin queue's submissions and completions lie; while it is off.
    pub(crate) fn place_admin(&self, entries: u16, submissions: Span, completions: Span) {
        let last = u32::from(entries) - 1;
        self.mmio.write32(AQA, last << 16 | last);
        for (at, span) in [(ASQ, submissions), (ACQ, completions)] {
            self.mmio.write32(at, span.addr().0 as u32);
            self.mmio.write32(at + 4, (span.addr().0 >> 32) as u32);
        }
    }

    /// How many queues have doorbells in the window, the admin queue among them.
    pub(crate) fn queues_max(&self) -> u16 {
        let room = self.mmio.bytes() - DOORBELLS;
        let queues = room / (2 * self.capabilities.stride);
        queues.min(u16::MAX.into()) as u16
    }

    /// The doorbells of a queue, which are in memory too if the controller knows of `shadows`.
    pub(crate) fn doorbells(&self, queue: u16, shadows: Option<&Shadows>) -> Option<Doorbells> {
        let stride = self.capabilities.stride;
        let at = 2 * usize::from(queue) * stride;
        let bell = |at| {
            Some(Bell {
                register: self.mmio.window(DOORBELLS + at, 4)?,
                shadow: shadows.map(|shadows| shadows.at(at)),
            })
        };
        Some(Doorbells {
            tail: bell(at)?,
            head: bell(at + stride)?,
        })
    }
}

/// What the controller is told of a queue.
pub(crate) struct Doorbells {
    /// Where the next submission will stand.
    pub tail: Bell,
    /// Which completion will be looked at next.
    pub head: Bell,
}

/// One doorbell.
pub(crate) struct Bell {
    register: Mmio,
    shadow: Option<Shadow>,
}

impl Bell {
    /// What was written to memory before is seen with it.
    pub(crate) fn ring(&self, place: u16) {
        fence(Ordering::SeqCst);
        let is_asleep = self
            .shadow
            .as_ref()
            .is_none_or(|shadow| shadow.advance(place));
        if is_asleep {
            self.register.write32(0, place.into());
        }
    }
}
