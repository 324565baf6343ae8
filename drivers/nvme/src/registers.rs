//! The controller's registers (section 3.1 of the base specification, 2.0).

use alloc::sync::Arc;
use core::sync::atomic::{Ordering, fence};

use base::Duration;
use hal::{Mmio, Span};

use crate::error::Error;
use crate::machine::Clock;
use crate::mediator::{Access, Mediator};
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

/// All but the doorbells.
enum Control {
    Own(Mmio),
    Mediated(Arc<dyn Mediator>),
}

/// All registers.
pub(crate) struct Registers {
    control: Control,
    doorbells: Mmio,
    pub capabilities: Capabilities,
}

impl Registers {
    pub(crate) fn new(access: Access) -> Result<Self, Error> {
        let (control, doorbells) = match access {
            Access::Whole(mmio) => {
                let bytes = mmio.bytes().checked_sub(DOORBELLS).ok_or(Error::Absent)?;
                let doorbells = mmio.window(DOORBELLS, bytes).ok_or(Error::Absent)?;
                (Control::Own(mmio), doorbells)
            }
            Access::Mediated {
                doorbells,
                mediator,
            } => (Control::Mediated(mediator), doorbells),
        };
        if doorbells.bytes() < 8 || control.read(CSTS) == ABSENT {
            return Err(Error::Absent);
        }
        let (low, high) = (control.read(CAP), control.read(CAP + 4));
        Ok(Self {
            control,
            doorbells,
            capabilities: Capabilities::parse(u64::from(high) << 32 | u64::from(low))?,
        })
    }

    /// Who has the admin queue, if it is not ours.
    pub(crate) fn mediator(&self) -> Option<Arc<dyn Mediator>> {
        match &self.control {
            Control::Own(_) => None,
            Control::Mediated(mediator) => Some(mediator.clone()),
        }
    }

    /// Major, minor and tertiary number, the major in the highest two bytes.
    pub(crate) fn version(&self) -> u32 {
        self.control.read(VS)
    }

    pub(crate) fn status(&self) -> Status {
        match self.control.read(CSTS) {
            ABSENT => Status::Absent,
            word if word & CSTS_FATAL != 0 => Status::Fatal,
            word if word & CSTS_READY != 0 => Status::Ready,
            _ => Status::Off,
        }
    }

    /// Waits, as long as the controller says that it may take.
    pub(crate) fn wait_for(&self, wanted: Status, clock: &impl Clock) -> Result<(), Error> {
        let until = clock.now() + self.capabilities.patience;
        loop {
            match self.status() {
                status if status == wanted => return Ok(()),
                Status::Absent => return Err(Error::Absent),
                // It is on the way down all the same.
                Status::Fatal if wanted != Status::Off => return Err(Error::Fatal),
                _ => {}
            }
            if clock.now() >= until {
                return Err(Error::NotReady);
            }
            clock.pause();
        }
    }

    pub(crate) fn disable(&self) {
        match &self.control {
            Control::Own(mmio) => mmio.write32(CC, mmio.read32(CC) & !CC_ENABLE),
            Control::Mediated(mediator) => mediator.enable(false),
        }
    }

    pub(crate) fn enable(&self) {
        match &self.control {
            Control::Own(mmio) => mmio.write32(CC, CC_SHAPE | CC_ENABLE),
            Control::Mediated(mediator) => mediator.enable(true),
        }
    }

    /// Says where the admin queue's submissions and completions lie; while it is off.
    pub(crate) fn place_admin(&self, entries: u16, submissions: Span, completions: Span) {
        if let Control::Own(mmio) = &self.control {
            let words = admin_words(entries, submissions, completions);
            words
                .into_iter()
                .for_each(|(at, word)| mmio.write32(at, word));
        }
    }

    /// Whether the controller says that they lie there.
    pub(crate) fn admin_is_at(&self, entries: u16, submissions: Span, completions: Span) -> bool {
        let words = admin_words(entries, submissions, completions);
        let mut words = words.into_iter();
        words.all(|(at, word)| self.control.read(at) == word)
    }

    /// How many queues have doorbells in the window, the admin queue among them.
    pub(crate) fn queues_max(&self) -> u16 {
        let queues = self.doorbells.bytes() / (2 * self.capabilities.stride);
        queues.min(u16::MAX.into()) as u16
    }

    /// The doorbells of a queue, which are in memory too if the controller knows of `shadows`.
    pub(crate) fn doorbells(&self, queue: u16, shadows: Option<&Shadows>) -> Option<Doorbells> {
        let stride = self.capabilities.stride;
        let at = 2 * usize::from(queue) * stride;
        let bell = |at| {
            Some(Bell {
                register: self.doorbells.window(at, 4)?,
                shadow: shadows.map(|shadows| shadows.at(at)),
            })
        };
        Some(Doorbells {
            tail: bell(at)?,
            head: bell(at + stride)?,
        })
    }
}

/// What the registers of the admin queue are to be.
fn admin_words(entries: u16, submissions: Span, completions: Span) -> [(usize, u32); 5] {
    let last = u32::from(entries) - 1;
    let (submissions, completions) = (submissions.addr().0, completions.addr().0);
    [
        (AQA, last << 16 | last),
        (ASQ, submissions as u32),
        (ASQ + 4, (submissions >> 32) as u32),
        (ACQ, completions as u32),
        (ACQ + 4, (completions >> 32) as u32),
    ]
}

impl Control {
    fn read(&self, register: usize) -> u32 {
        match self {
            Self::Own(mmio) => mmio.read32(register),
            Self::Mediated(mediator) => mediator.register(register),
        }
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
