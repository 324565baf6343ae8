//! Bringing the controller up, and up again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use base::PAGE_BYTES;
use block::{Channel, ChannelBox, Failure, Limits, Question, Reply};
use hal::DmaSource;

use crate::admin::Admin;
use crate::channel::{About, Generation, IoQueue};
use crate::entry::admin;
use crate::error::Error;
use crate::identify::{Facts, Identity, Shape};
use crate::machine::Machine;
use crate::mediator::Access;
use crate::registers::{Registers, Status};
use crate::ring::Ring;
use crate::shadow::Shadows;
use crate::slots::Slots;
use crate::virtualization::Share;

/// Namespaces that we look at.
const NAMESPACES_MAX: usize = 16;
/// Entries of an I/O queue: commands under way and one more.
const ENTRIES: u32 = 64;
/// Since which version the controller lists its namespaces: 1.1.
const LISTS_NAMESPACES: u32 = 1 << 16 | 1 << 8;

/// How many queues a disk is to have, and how many interrupts there are for them.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Queues of each namespace at most; one at least.
    pub queues: u16,
    /// Entries of MSI-X that lead somewhere; one at least. Queue `n` of each namespace raises entry `n`,
    /// modulo their number; entry 0 is raised by the admin queue too.
    pub vectors: u16,
    /// It may have no namespace of its own: it rules those of virtual functions.
    pub may_be_empty: bool,
}

/// A part of the medium: a disk.
struct Namespace {
    number: u32,
    shape: Shape,
    /// The controller knows its queues.
    is_started: bool,
}

/// The whole controller.
pub struct Controller<D, M> {
    registers: Registers,
    memory: D,
    machine: M,
    wanted: Wanted,
    admin: Option<Admin>,
    /// Doorbells in memory that the controller knows of.
    shadows: Option<Shadows>,
    facts: Option<Facts>,
    namespaces: Vec<Namespace>,
    /// Queues of each namespace.
    queues: u16,
    /// Controllers of virtual functions, how many, and what each has.
    pub(crate) tenants: Option<(u16, Share)>,
    generation: Generation,
}

impl<D: DmaSource, M: Machine> Controller<D, M> {
    /// Brings the controller up and looks for its namespaces. Nothing of them is started yet.
    pub fn open(access: Access, memory: D, machine: M, wanted: Wanted) -> Result<Self, Error> {
        let mut controller = Self {
            registers: Registers::new(access)?,
            memory,
            machine,
            wanted,
            admin: None,
            shadows: None,
            facts: None,
            namespaces: Vec::new(),
            queues: 0,
            tenants: None,
            generation: Generation::default(),
        };
        match controller
            .bring_up()
            .and_then(|()| controller.look_around())
        {
            Ok(()) => Ok(controller),
            Err(error) => {
                controller.reset();
                Err(error)
            }
        }
    }

    /// What it is.
    pub fn identity(&self) -> Option<&Identity> {
        self.facts.as_ref().map(|facts| &facts.identity)
    }

    /// Whether it takes commands; not after it was reset from elsewhere.
    pub fn is_ready(&self) -> bool {
        self.registers.status() == Status::Ready
    }

    /// How many namespaces can be disks.
    pub fn namespaces(&self) -> usize {
        self.namespaces.len()
    }

    /// The number by which the controller knows a namespace.
    pub fn namespace_number(&self, index: usize) -> Option<u32> {
        Some(self.namespaces.get(index)?.number)
    }

    /// Whether a namespace is a disk of ours, or all are meant.
    pub(crate) fn is_own(&self, number: u32) -> bool {
        let mut own = self.namespaces.iter();
        number == u32::MAX || own.any(|namespace| namespace.number == number)
    }

    /// The shape of a namespace, as last heard.
    pub fn limits(&self, index: usize) -> Option<Limits> {
        Some(self.namespaces.get(index)?.shape.limits)
    }

    fn bring_up(&mut self) -> Result<(), Error> {
        self.registers.disable();
        self.registers.wait_for(Status::Off, &self.machine)?;
        self.machine.let_reach_memory(true);
        let mut admin = Admin::new(&self.memory, &self.registers)?;
        self.registers.enable();
        if let Err(error) = self.registers.wait_for(Status::Ready, &self.machine) {
            // Nothing was sent yet, but it was told where the queue lies.
            self.admin = Some(admin);
            return Err(error);
        }
        let facts = admin.identify_controller(&self.machine);
        self.admin = Some(admin);
        self.facts = Some(Facts::parse(&facts?));
        Ok(())
    }

    /// After a reset: with as many queues as before.
    fn bring_up_again(&mut self) -> Result<(), Error> {
        self.bring_up()?;
        let needed = self.queues.saturating_mul(self.namespaces.len() as u16);
        match self.agree_on_queues()? {
            given if given < needed => return Err(Error::Changed),
            given => self.share_doorbells(given)?,
        }
        self.restore_secondaries()
    }

    /// Has the admin queue do something. After an error that is no refusal the controller is reset: the command may
    /// still be under way.
    pub(crate) fn with_admin<R>(
        &mut self,
        act: impl FnOnce(&mut Admin, &M) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let admin = self.admin.as_mut().ok_or(Error::Absent)?;
        let done = act(admin, &self.machine);
        if !matches!(done, Ok(_) | Err(Error::Refused(_))) {
            self.reset();
        }
        done
    }

    /// Has doorbells of so many queues in memory too, where the controller offers it.
    fn share_doorbells(&mut self, queues: u16) -> Result<(), Error> {
        let is_offered = self.facts.as_ref().is_some_and(|facts| facts.has_shadows);
        if !is_offered || !Shadows::holds(queues, self.registers.capabilities.stride) {
            return Ok(());
        }
        let admin = self.admin.as_mut().ok_or(Error::Absent)?;
        let shadows = self.shadows.insert(Shadows::new(&self.memory)?);
        if !admin.tell_shadows(shadows, &self.machine)? {
            self.shadows = None;
        }
        Ok(())
    }

    /// Finds the namespaces and divides the queues among them.
    fn look_around(&mut self) -> Result<(), Error> {
        let numbers = self.numbers()?;
        for number in numbers {
            // One that cannot be used is no disk; what else goes wrong is the controller's.
            match self.identify(number) {
                Ok(shape) => self.namespaces.push(Namespace {
                    number,
                    shape,
                    is_started: false,
                }),
                Err(Error::NoNamespace | Error::NotSupported | Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let count = self.namespaces.len() as u16;
        let given = self.agree_on_queues()?;
        self.share_doorbells(given)?;
        self.namespaces.truncate(given.into());
        self.queues = match given.checked_div(count) {
            None if self.wanted.may_be_empty => 0,
            None => return Err(Error::NoNamespace),
            Some(queues) => queues.clamp(1, self.wanted.queues.max(1)),
        };
        Ok(())
    }

    fn numbers(&mut self) -> Result<Vec<u32>, Error> {
        let highest = self.facts.as_ref().map_or(0, |facts| facts.namespaces);
        if self.registers.version() < LISTS_NAMESPACES {
            return Ok((1..=highest).take(NAMESPACES_MAX).collect());
        }
        let admin = self.admin.as_mut().ok_or(Error::Absent)?;
        admin.active_namespaces(NAMESPACES_MAX, &self.machine)
    }

    fn identify(&mut self, number: u32) -> Result<Shape, Error> {
        let admin = self.admin.as_mut().ok_or(Error::Absent)?;
        let bytes = admin.identify_namespace(number, &self.machine)?;
        let facts = self.facts.as_ref().ok_or(Error::Absent)?;
        facts.namespace(&bytes)
    }

    /// Asks for a queue for each CPU and namespace; returns how many there are.
    fn agree_on_queues(&mut self) -> Result<u16, Error> {
        let namespaces = self.namespaces.len().max(1) as u16;
        let wanted = self.wanted.queues.max(1).saturating_mul(namespaces);
        let wanted = wanted.min(self.registers.queues_max().saturating_sub(1));
        if wanted == 0 {
            return Err(Error::NoQueue);
        }
        let admin = self.admin.as_mut().ok_or(Error::Absent)?;
        admin.agree_on_queues(wanted, &self.machine)
    }

    /// Asks for the shape of a namespace anew.
    pub(crate) fn refresh(&mut self, index: usize) -> Option<Limits> {
        let number = self.namespace_number(index)?;
        match self.identify(number) {
            Ok(shape) => self.namespaces.get_mut(index)?.shape.resize(shape),
            Err(Error::Refused(_) | Error::NoNamespace | Error::NotSupported) => {}
            // What of the queue is still under way is ended by it.
            Err(_) => self.reset(),
        }
        self.limits(index)
    }

    /// Asks what a program wants to know, or rules virtual functions as it says.
    ///
    /// Errors: `Unsupported` if the command could do more, or its answer is longer than a page.
    pub(crate) fn ask(&mut self, question: &Question, answer: &mut [u8]) -> Result<Reply, Failure> {
        let may_ask = match question.opcode {
            admin::IDENTIFY | admin::GET_LOG_PAGE | admin::GET_FEATURES => true,
            admin::VIRTUALIZATION | admin::NAMESPACE_ATTACHMENT => self.may_rule(question, answer),
            _ => false,
        };
        if !may_ask || answer.len() > PAGE_BYTES {
            return Err(Failure::Unsupported);
        }
        let admin = self.admin.as_mut().ok_or(Failure::Gone)?;
        let asked = admin.ask(question, answer, &self.machine);
        asked.map_err(|_| {
            self.reset();
            Failure::TimedOut
        })
    }

    /// Makes the controller know the queues of a namespace.
    pub fn start(&mut self, index: usize) -> Result<Vec<ChannelBox>, Error> {
        if self.admin.is_none()
            && let Err(error) = self.bring_up_again()
        {
            self.reset();
            return Err(error);
        }
        self.check_shape(index)?;
        let mut queues = Vec::new();
        for lane in 0..self.queues {
            match self.start_queue(index, lane) {
                Ok(queue) => queues.push(queue),
                Err(error) => {
                    self.reset();
                    queues.iter_mut().for_each(Channel::retire);
                    return Err(error);
                }
            }
        }
        if let Some(namespace) = self.namespaces.get_mut(index) {
            namespace.is_started = true;
        }
        let boxed = |queue| Box::new(queue) as ChannelBox;
        Ok(queues.into_iter().map(boxed).collect())
    }

    /// Requests were cut for the shape that a namespace had, and another program may have formatted it.
    fn check_shape(&mut self, index: usize) -> Result<(), Error> {
        let number = self.namespace_number(index).ok_or(Error::NoNamespace)?;
        let shape = match self.identify(number) {
            Ok(shape) => shape,
            Err(error @ (Error::Refused(_) | Error::NoNamespace | Error::NotSupported)) => {
                return Err(error);
            }
            Err(error) => {
                self.reset();
                return Err(error);
            }
        };
        let namespace = self.namespaces.get(index).ok_or(Error::NoNamespace)?;
        match namespace.shape.is_alike(&shape) {
            true => Ok(()),
            false => Err(Error::Changed),
        }
    }

    fn queue_number(&self, index: usize, lane: u16) -> u16 {
        1 + index as u16 * self.queues + lane
    }

    fn start_queue(&mut self, index: usize, lane: u16) -> Result<IoQueue, Error> {
        let number = self.queue_number(index, lane);
        let namespace = self.namespaces.get(index).ok_or(Error::NoNamespace)?;
        let about = About {
            namespace: namespace.number,
            shape: namespace.shape,
        };
        let entries = self.registers.capabilities.entries_max.min(ENTRIES) as u16;
        let doorbells = self.registers.doorbells(number, self.shadows.as_ref());
        let doorbells = doorbells.ok_or(Error::NoQueue)?;
        let ring = Ring::new(&self.memory, number, entries, doorbells)?;
        let slots = Slots::new(&self.memory, entries - 1).ok_or(Error::OutOfMemory)?;
        let mut queue = IoQueue::new(ring, slots, about, self.generation.clone());
        let vector = lane % self.wanted.vectors.max(1);
        let admin = self.admin.as_mut().ok_or(Error::Absent)?;
        match admin.create(queue.ring(), vector, &self.machine) {
            Ok(()) => Ok(queue),
            Err(error) => {
                self.reset();
                queue.retire();
                Err(error)
            }
        }
    }

    /// Makes the controller forget the queues of a namespace, or, where that fails, everything: then it
    /// touches no memory of any namespace any more.
    pub(crate) fn stop(&mut self, index: usize) {
        let lanes = self.queues;
        let first = self.queue_number(index, 0);
        let Some(namespace) = self.namespaces.get_mut(index) else {
            return;
        };
        if !core::mem::take(&mut namespace.is_started) {
            return;
        }
        let Some(admin) = self.admin.as_mut() else {
            return;
        };
        let is_ready = self.registers.status() == Status::Ready;
        let mut delete = |number| admin.delete(number, &self.machine).is_ok();
        if !(is_ready && (first..first + lanes).all(&mut delete)) {
            self.reset();
        }
    }

    /// Stops the controller: it forgets all queues.
    fn reset(&mut self) {
        self.registers.disable();
        if self.registers.wait_for(Status::Off, &self.machine).is_err() {
            self.machine.let_reach_memory(false);
        }
        self.generation.advance();
        for namespace in &mut self.namespaces {
            namespace.is_started = false;
        }
        if let Some(mut admin) = self.admin.take() {
            admin.retire();
        }
        if let Some(shadows) = self.shadows.take() {
            shadows.forget();
        }
    }
}
