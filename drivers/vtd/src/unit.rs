//! A unit: its tables, and what is done with them in the right order.

use alloc::vec::Vec;

use hal::pci::{MsiMessage, PciAddress};
use hal::{DmaSource, Mmio, Registers};

use crate::Error;
use crate::capabilities::Capabilities;
use crate::context::{Context, RootTable};
use crate::error::MissingFeature;
use crate::fault::{self, Fault, Taken};
use crate::interrupts::{Interrupt, InterruptTable};
use crate::pages::Pages;
use crate::queue::{Forget, Queue};
use crate::registers::{
    FAULT_ADDRESS, FAULT_CONTROL, FAULT_DATA, INTERRUPT_REMAPPING, INTERRUPT_TABLE,
    QUEUED_INVALIDATION, ROOT_TABLE, SET_INTERRUPT_TABLE, SET_ROOT_TABLE, TRANSLATION,
    VECTORS_PASS, command, leave, write64,
};
use crate::second_level::SecondLevel;

/// In the control of faults' interrupts: masked.
const MASKED: u32 = 1 << 31;

/// Names a domain of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainId(u16);

/// A unit whose tables come from `S`.
pub struct Unit<S: DmaSource, R: Registers = Mmio> {
    registers: R,
    source: S,
    capabilities: Capabilities,
    root: RootTable,
    queue: Queue,
    /// Made when interrupts are first remapped.
    interrupts: Option<InterruptTable>,
    /// Domain `n` has the number `n + 1`: with 0 a unit marks what it found absent.
    domains: Vec<SecondLevel>,
}

impl<S: DmaSource, R: Registers> Unit<S, R> {
    /// Takes the unit over. Nothing is translated yet, and no function has a domain.
    pub fn open(registers: R, source: S) -> Result<Self, Error> {
        let capabilities = Capabilities::read(&registers)?;
        // A firmware that protected itself may have left all of it on.
        for state in [
            TRANSLATION,
            INTERRUPT_REMAPPING,
            VECTORS_PASS,
            QUEUED_INVALIDATION,
        ] {
            leave(&registers, state)?;
        }
        registers.write32(FAULT_CONTROL, MASKED);
        let root = RootTable::new(&source).map_err(Error::Memory)?;
        let queue = Queue::new(&source, capabilities.drains).map_err(Error::Memory)?;
        let mut unit = Self {
            registers,
            source,
            capabilities,
            root,
            queue,
            interrupts: None,
            domains: Vec::new(),
        };
        unit.start()?;
        Ok(unit)
    }

    fn start(&mut self) -> Result<(), Error> {
        write64(&self.registers, ROOT_TABLE, self.root.address());
        command(&self.registers, SET_ROOT_TABLE)?;
        self.queue.start(&self.registers)?;
        self.forget(&[Forget::Contexts, Forget::Translations])
    }

    /// What the unit can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// From now on a function reaches only what its domain maps.
    pub fn translate(&mut self) -> Result<(), Error> {
        command(&self.registers, TRANSLATION)
    }

    /// From now on a function raises only those interrupts that [`lead`](Self::lead) gave to it,
    /// and names them by [`message_of`](crate::message_of).
    pub fn remap_interrupts(&mut self) -> Result<(), Error> {
        if !self.capabilities.remaps_interrupts {
            return Err(Error::Lacks(MissingFeature::Interrupts));
        }
        let table = InterruptTable::new(&self.source).map_err(Error::Memory)?;
        write64(&self.registers, INTERRUPT_TABLE, table.address());
        // The unit knows it from here on.
        self.interrupts = Some(table);
        command(&self.registers, SET_INTERRUPT_TABLE)?;
        self.forget(&[Forget::Interrupts])?;
        command(&self.registers, INTERRUPT_REMAPPING)
    }

    /// Gives entry `index` to a function; whoever had it has it no more.
    pub fn lead(&mut self, index: u8, interrupt: Interrupt) -> Result<(), Error> {
        let table = self.interrupts.as_ref();
        let table = table.ok_or(Error::Lacks(MissingFeature::Interrupts))?;
        table.set(index, interrupt);
        self.forget(&[Forget::Interrupt(index)])
    }

    /// A domain that maps nothing.
    pub fn new_domain(&mut self) -> Result<DomainId, Error> {
        let number = self.domains.len() + 1;
        let is_known = number < self.capabilities.domains as usize;
        let number = u16::try_from(number).ok().filter(|_| is_known);
        let number = number.ok_or(Error::TooManyDomains)?;
        let Capabilities {
            levels,
            has_large_pages,
            ..
        } = self.capabilities;
        let tables = SecondLevel::new(&self.source, levels, has_large_pages);
        self.domains.push(tables.map_err(Error::Memory)?);
        Ok(DomainId(number))
    }

    fn tables_of(&mut self, domain: DomainId) -> Result<&mut SecondLevel, Error> {
        let at = usize::from(domain.0).wrapping_sub(1);
        self.domains.get_mut(at).ok_or(Error::NoDomain)
    }

    /// Leads a function, which must have had no domain, to this one.
    pub fn attach(&mut self, function: PciAddress, domain: DomainId) -> Result<(), Error> {
        let context = Context {
            domain: domain.0,
            tables: self.tables_of(domain)?.address(),
            levels: self.capabilities.levels,
        };
        let led = self.root.lead(&self.source, function, &context);
        led.map_err(Error::Memory)?;
        match self.capabilities.caches_absence {
            true => self.forget(&[Forget::Contexts, Forget::Translations]),
            false => Ok(()),
        }
    }

    /// Lets the functions of a domain read and write these pages.
    pub fn map(&mut self, domain: DomainId, pages: Pages) -> Result<(), Error> {
        let at = usize::from(domain.0).wrapping_sub(1);
        let tables = self.domains.get_mut(at).ok_or(Error::NoDomain)?;
        let mapped = tables.map(&self.source, pages);
        // Of what was mapped and taken back the unit may have seen something.
        if mapped.is_err() || self.capabilities.caches_absence {
            self.forget_domain(domain)?;
        }
        Ok(mapped?)
    }

    /// Takes pages away from the functions of a domain, which reach them no more when this
    /// returns without an error.
    pub fn unmap(&mut self, domain: DomainId, device: u64, bytes: u64) -> Result<(), Error> {
        self.tables_of(domain)?.unmap(device, bytes)?;
        self.forget_domain(domain)
    }

    /// Takes away what is mapped in a range, if anything is, likewise. A large page goes as a
    /// whole.
    pub fn clear(&mut self, domain: DomainId, device: u64, bytes: u64) -> Result<(), Error> {
        self.tables_of(domain)?.clear_range(device, bytes)?;
        self.forget_domain(domain)
    }

    /// The first address that functions of a domain cannot be led from.
    pub fn limit(&mut self, domain: DomainId) -> Result<u64, Error> {
        self.tables_of(domain).map(|tables| tables.limit())
    }

    /// How many tables a domain has below its top.
    pub fn tables(&mut self, domain: DomainId) -> Result<usize, Error> {
        self.tables_of(domain).map(|tables| tables.count())
    }

    /// Where the unit does not say that it forgot, tables that were taken out stay for good.
    fn forget_domain(&mut self, domain: DomainId) -> Result<(), Error> {
        self.forget(&[Forget::Domain(domain.0)])?;
        self.tables_of(domain)?.release();
        Ok(())
    }

    fn forget(&mut self, all: &[Forget]) -> Result<(), Error> {
        self.queue.run(&self.registers, all)
    }

    /// Says how the unit is to tell of faults; it does once they are unmasked.
    pub fn lead_faults(&mut self, message: MsiMessage) {
        self.registers.write32(FAULT_DATA, message.data);
        write64(&self.registers, FAULT_ADDRESS, message.address);
    }

    /// Whether a fault interrupts.
    pub fn mask_faults(&mut self, are_masked: bool) {
        let control = if are_masked { MASKED } else { 0 };
        self.registers.write32(FAULT_CONTROL, control);
    }

    /// Reports what was refused since the last call, as far as the unit recorded it.
    pub fn take_faults(&mut self, report: &mut dyn FnMut(Fault)) -> Taken {
        fault::take(&self.registers, self.capabilities.faults, report)
    }
}
