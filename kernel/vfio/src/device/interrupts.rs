//! Interrupts: which message counts up which eventfd (VFIO_DEVICE_SET_IRQS).
//!
//! A message of the device goes to the CPU that set it up, where its program is likely to wait, and follows that from there
//! ([`crate::vectors`]). The kernel writes the messages; a program only names eventfds.

use alloc::vec::Vec;

use base::{CpuId, VirtAddr};
use hal::msi::Msi;
use hal::pci::{Msix, PciFunction};
use mach::mem::fallible::{self, TryGrow};
use mm::user;
use sync::{Error, Result};
use vfio::{Action, Data, IrqSet, IrqSetHeader, numbers};

use super::{COMMAND, Device};
use crate::argument;
use crate::shape::Shape;
use crate::trigger::{Trigger, TriggerSlot};
use crate::vectors::Claim;

/// Bytes of the request without what follows.
const HEADER_BYTES: u64 = 20;
/// In the command register: the function answers at its base addresses.
const MEMORY: u16 = 1 << 1;

/// How a device sends messages now.
enum Kind {
    Msi(Msi),
    Msix(Msix),
}

/// The messages of a device, by their numbers.
pub struct Interrupts {
    kind: Option<Kind>,
    lines: Vec<Option<Claim>>,
}

impl Interrupts {
    /// None.
    pub fn new() -> Self {
        Self {
            kind: None,
            lines: Vec::new(),
        }
    }

    fn index(&self) -> Option<u32> {
        self.kind.as_ref().map(|kind| match kind {
            Kind::Msi(_) => numbers::IRQ_MSI,
            Kind::Msix(_) => numbers::IRQ_MSIX,
        })
    }

    /// Has the device send messages of a kind; none leads anywhere yet.
    fn enable(&mut self, shape: &Shape, index: u32, count: usize) -> Result<()> {
        self.lines.make_room(count)?;
        self.kind = Some(match index {
            numbers::IRQ_MSI => Kind::Msi(shape.msi.ok_or(Error::Invalid)?),
            _ => Kind::Msix(Msix::new(shape).map_err(|_| Error::Io)?),
        });
        self.lines.resize_with(count, || None);
        Ok(())
    }

    /// The device sends nothing, and no message leads anywhere.
    pub fn disable(&mut self, shape: &Shape) {
        match self.kind.take() {
            Some(Kind::Msi(msi)) => msi.disable(shape),
            Some(Kind::Msix(msix)) => msix.disable(shape),
            None => {}
        }
        self.lines.clear();
    }

    /// Leads message `number` to a trigger, or nowhere.
    fn lead(&mut self, shape: &Shape, number: usize, trigger: Option<Trigger>) -> Result<()> {
        let Some(trigger) = trigger else {
            self.silence(shape, number);
            return Ok(());
        };
        let line = self.lines.get_mut(number).ok_or(Error::Invalid)?;
        if let Some(claim) = line {
            claim.set(trigger);
            return Ok(());
        }
        let claim = Claim::new().ok_or(Error::NoSpace)?;
        claim.set(trigger);
        *line = Some(claim);
        self.send(shape, number);
        Ok(())
    }

    /// Has the device send what the vector of message `number` is for.
    fn send(&self, shape: &Shape, number: usize) {
        let Some(Some(claim)) = self.lines.get(number) else {
            return;
        };
        let message = claim.message(shape.function.address());
        match &self.kind {
            Some(Kind::Msi(msi)) => msi.route(shape, message),
            // It has as many as were enabled.
            Some(Kind::Msix(msix)) => _ = msix.route(number as u16, message),
            None => {}
        }
    }

    fn silence(&mut self, shape: &Shape, number: usize) {
        match &self.kind {
            Some(Kind::Msi(msi)) => msi.disable(shape),
            Some(Kind::Msix(msix)) => msix.mask(number as u16),
            None => {}
        }
        if let Some(line) = self.lines.get_mut(number) {
            *line = None;
        }
    }

    /// Tells the device everything again, after a reset.
    pub fn restore(&mut self, shape: &Shape) {
        if let Some(Kind::Msix(_)) = self.kind
            && let Ok(msix) = Msix::new(shape)
        {
            self.kind = Some(Kind::Msix(msix));
        }
        (0..self.lines.len()).for_each(|number| self.send(shape, number));
    }

    /// The CPU of each message that leads somewhere, if it may change.
    pub fn cpus(&self) -> impl Iterator<Item = Option<CpuId>> {
        self.lines.iter().flatten().map(Claim::cpu)
    }

    fn signal(&self, number: usize) {
        if let Some(Some(claim)) = self.lines.get(number) {
            claim.signal();
        }
    }
}

/// What follows a request.
enum Given {
    None,
    Bools(Vec<u8>),
    Triggers(Vec<Option<Trigger>>),
}

impl Given {
    fn read(set: &IrqSet, at: VirtAddr) -> Result<Self> {
        let count = set.which.len();
        let mut bytes = fallible::zeroed(count * set.data.bytes_each())?;
        user::copy_in(at, &mut bytes)?;
        Ok(match set.data {
            Data::None => Self::None,
            Data::Bools => Self::Bools(bytes),
            Data::Eventfds => {
                let mut triggers = fallible::vec(count)?;
                for fd in bytes.as_chunks().0 {
                    triggers.push(Trigger::of(i32::from_ne_bytes(*fd))?);
                }
                Self::Triggers(triggers)
            }
        })
    }

    /// Whether what is asked for is asked for interrupt `place` of those that are named.
    fn is_for(&self, place: usize) -> bool {
        match self {
            Self::Bools(bools) => bools.get(place).is_some_and(|byte| *byte != 0),
            _ => true,
        }
    }
}

impl Device {
    pub(super) fn set_irqs(&self, at: u64) -> Result<usize> {
        let header: IrqSetHeader = argument::read(at)?;
        let set = IrqSet::parse(&header, |index| self.irq_count(index)).ok_or(Error::Invalid)?;
        let given = Given::read(&set, VirtAddr(at + HEADER_BYTES))?;
        if set.action != Action::Trigger {
            return Err(Error::NotTerminal);
        }
        match set.index {
            numbers::IRQ_MSI | numbers::IRQ_MSIX => {
                self.with_registers(|| self.set_messages(&set, given))??;
            }
            numbers::IRQ_ERROR => set_single(&self.errors.0, &set, given),
            numbers::IRQ_REQUEST => set_single(&self.request, &set, given),
            _ => return Err(Error::NotTerminal),
        }
        Ok(0)
    }

    fn set_messages(&self, set: &IrqSet, given: Given) -> Result<()> {
        let shape = self.shape();
        let mut interrupts = self.interrupts.lock();
        let is_on = interrupts.index() == Some(set.index);
        if is_on && set.which.is_empty() && matches!(given, Given::None) {
            interrupts.disable(shape);
            return Ok(());
        }
        if !is_on && interrupts.index().is_some() {
            return Err(Error::Invalid);
        }
        let first = set.which.start as usize;
        let Given::Triggers(triggers) = given else {
            if !is_on {
                return Err(Error::Invalid);
            }
            let named = (0..set.which.len()).filter(|place| given.is_for(*place));
            named.for_each(|place| interrupts.signal(first + place));
            return Ok(());
        };
        if !is_on {
            let count = self.irq_count(set.index).unwrap_or(0);
            interrupts.enable(shape, set.index, count as usize)?;
        }
        for (number, trigger) in (first..).zip(triggers) {
            let led = interrupts.lead(shape, number, trigger);
            if led.is_err() {
                // Those before it are undone as well.
                (first..number).for_each(|number| interrupts.silence(shape, number));
                if !is_on {
                    interrupts.disable(shape);
                }
                return led;
            }
        }
        Ok(())
    }

    /// Runs `act` with the function's registers answering, whatever its program has done to that.
    ///
    /// Errors: `WrongDevice` if it is revoked.
    pub(super) fn with_registers<R>(&self, act: impl FnOnce() -> R) -> Result<R> {
        let config = self.config.lock();
        if config.is_revoked() {
            return Err(Error::WrongDevice);
        }
        let shape = self.shape();
        shape.config_write(COMMAND, (config.command() | MEMORY).into());
        let done = act();
        self.obey_config(&config);
        Ok(done)
    }
}

/// Of a kind that has one interrupt, which the kernel raises itself.
fn set_single(slot: &TriggerSlot, set: &IrqSet, given: Given) {
    match given {
        Given::Triggers(mut triggers) => {
            if let Some(trigger) = triggers.pop() {
                slot.set(trigger);
            }
        }
        Given::None if set.which.is_empty() => slot.set(None),
        _ if !set.which.is_empty() && given.is_for(0) => _ = slot.signal(),
        _ => {}
    }
}
