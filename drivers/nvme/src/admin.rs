//! What the driver asks of the controller by admin commands.
//!
//! It has the admin queue itself, or somebody who keeps that for it ([`Mediator`]).

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::PAGE_BYTES;
use block::{Question, Reply};
use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};

use crate::admin_queue::AdminQueue;
use crate::entry::{Entry, StatusField, admin, identify};
use crate::error::Error;
use crate::machine::Machine;
use crate::mediator::Mediator;
use crate::registers::Registers;
use crate::ring::Ring;
use crate::shadow::Shadows;

/// In an opcode: the command takes data.
const HOST_TO_CONTROLLER: u8 = 1 << 0;

/// How commands get there.
enum Transport {
    Own(AdminQueue),
    Mediated(Arc<dyn Mediator>),
}

/// The way to the controller, and a page for what it says.
pub(crate) struct Admin {
    transport: Transport,
    page: DmaBuf<WriteBack, Shared>,
}

impl Admin {
    pub(crate) fn new(memory: &impl DmaSource, registers: &Registers) -> Result<Self, Error> {
        let request = DmaRequest::new(PAGE_BYTES, PAGE_BYTES);
        let page: DmaBuf = memory.dma_alloc(&request).map_err(|_| Error::OutOfMemory)?;
        let transport = match registers.mediator() {
            Some(mediator) => Transport::Mediated(mediator),
            None => {
                let mut queue = AdminQueue::new(memory, registers)?;
                queue.place(registers)?;
                Transport::Own(queue)
            }
        };
        let page = page.share();
        Ok(Self { transport, page })
    }

    /// Sends a command and waits for its end; returns what it says beside.
    ///
    /// After any error but `Refused` the controller is to be reset: the command may still be under way.
    pub(crate) fn run(&mut self, entry: &Entry, machine: &impl Machine) -> Result<u32, Error> {
        let (status, result) = match &mut self.transport {
            Transport::Own(queue) => queue.run(entry, machine)?,
            Transport::Mediated(mediator) => {
                let (status, result) = mediator.run(entry.quads(0))?;
                (StatusField(status), result)
            }
        };
        match status.is_success() {
            true => Ok(result),
            false => Err(Error::Refused(status.0)),
        }
    }

    fn identify(
        &mut self,
        what: u32,
        namespace: u32,
        machine: &impl Machine,
    ) -> Result<Vec<u8>, Error> {
        let page = self.page.dev_addr(0, PAGE_BYTES);
        let entry = Entry::admin(admin::IDENTIFY, namespace, [what, 0, 0])
            .with_page(page.ok_or(Error::OutOfMemory)?);
        self.run(&entry, machine)?;
        let mut bytes = alloc::vec![0; PAGE_BYTES];
        self.page.copy_out(0, &mut bytes);
        Ok(bytes)
    }

    /// What the controller says of itself.
    pub(crate) fn identify_controller(&mut self, machine: &impl Machine) -> Result<Vec<u8>, Error> {
        self.identify(identify::CONTROLLER, 0, machine)
    }

    /// What it says of a namespace.
    pub(crate) fn identify_namespace(
        &mut self,
        namespace: u32,
        machine: &impl Machine,
    ) -> Result<Vec<u8>, Error> {
        self.identify(identify::NAMESPACE, namespace, machine)
    }

    /// The namespaces that it has for us, at most `most`, in rising order.
    pub(crate) fn active_namespaces(
        &mut self,
        most: usize,
        machine: &impl Machine,
    ) -> Result<Vec<u32>, Error> {
        let bytes = self.identify(identify::ACTIVE, 0, machine)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        let numbers = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes));
        Ok(numbers
            .take_while(|number| *number != 0)
            .take(most)
            .collect())
    }

    /// How many resources this controller has for those of virtual functions.
    pub(crate) fn primary_capabilities(
        &mut self,
        machine: &impl Machine,
    ) -> Result<Vec<u8>, Error> {
        self.identify(identify::PRIMARY, 0, machine)
    }

    /// The controllers of virtual functions, and what each has.
    pub(crate) fn secondary_controllers(
        &mut self,
        machine: &impl Machine,
    ) -> Result<Vec<u8>, Error> {
        self.identify(identify::SECONDARIES, 0, machine)
    }

    /// Sends a command with a list of one controller.
    pub(crate) fn run_on_controller(
        &mut self,
        entry: Entry,
        controller: u16,
        machine: &impl Machine,
    ) -> Result<(), Error> {
        let page = self.page.dev_addr(0, PAGE_BYTES);
        self.page.copy_in(0, &[0; PAGE_BYTES]);
        self.page.write_u32(0, u32::from(controller) << 16 | 1);
        let entry = entry.with_page(page.ok_or(Error::OutOfMemory)?);
        self.run(&entry, machine).map(drop)
    }

    /// Asks what a program wants to know; at most a page of answer, or of what the command takes.
    pub(crate) fn ask(
        &mut self,
        question: &Question,
        answer: &mut [u8],
        machine: &impl Machine,
    ) -> Result<Reply, Error> {
        let [word_10, word_11, word_12, rest @ ..] = question.words;
        let page = self.page.dev_addr(0, PAGE_BYTES);
        let entry = Entry {
            more: rest,
            ..Entry::admin(
                question.opcode,
                question.namespace,
                [word_10, word_11, word_12],
            )
        };
        // What an earlier answer left there is nobody's.
        self.page.copy_in(0, &[0; PAGE_BYTES]);
        if question.opcode & HOST_TO_CONTROLLER != 0 {
            self.page.copy_in(0, answer);
        }
        let entry = entry.with_page(page.ok_or(Error::OutOfMemory)?);
        let (status, result) = match self.run(&entry, machine) {
            Ok(result) => (0, result),
            Err(Error::Refused(status)) => (status, 0),
            Err(error) => return Err(error),
        };
        self.page.copy_out(0, answer);
        Ok(Reply { status, result })
    }

    /// Asks for so many queues; returns how many there are.
    pub(crate) fn agree_on_queues(
        &mut self,
        wanted: u16,
        machine: &impl Machine,
    ) -> Result<u16, Error> {
        let last = u32::from(wanted.max(1)) - 1;
        let words = [admin::FEATURE_QUEUES, last << 16 | last, 0];
        let given = self.run(&Entry::admin(admin::SET_FEATURES, 0, words), machine)?;
        let (submissions, completions) = (given as u16, (given >> 16) as u16);
        Ok(submissions.min(completions).saturating_add(1).min(wanted))
    }

    /// Tells where doorbells are in memory; false if the controller wants none.
    pub(crate) fn tell_shadows(
        &mut self,
        shadows: &Shadows,
        machine: &impl Machine,
    ) -> Result<bool, Error> {
        let (doorbells, events) = shadows.tell().ok_or(Error::OutOfMemory)?;
        let entry = Entry {
            pages: events.addr().0,
            ..Entry::admin(admin::DOORBELL_BUFFER, 0, [0; 3]).with_page(doorbells)
        };
        match self.run(&entry, machine) {
            Ok(_) => Ok(true),
            Err(Error::Refused(_)) => {
                shadows.forget();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the controller know a queue, whose ends raise an entry of MSI-X.
    pub(crate) fn create(
        &mut self,
        ring: &Ring,
        vector: u16,
        machine: &impl Machine,
    ) -> Result<(), Error> {
        let (submissions, completions) = ring.spans().ok_or(Error::OutOfMemory)?;
        let number = u32::from(ring.number());
        let shape = (u32::from(ring.entries()) - 1) << 16 | number;
        let flags = u32::from(vector) << 16 | admin::QUEUE_INTERRUPTS | admin::QUEUE_IS_CONTIGUOUS;
        let create = Entry::admin(admin::CREATE_COMPLETIONS, 0, [shape, flags, 0]);
        self.run(&create.with_page(completions), machine)?;
        let flags = number << 16 | admin::QUEUE_IS_CONTIGUOUS;
        let create = Entry::admin(admin::CREATE_SUBMISSIONS, 0, [shape, flags, 0]);
        self.run(&create.with_page(submissions), machine).map(drop)
    }

    /// Makes it forget a queue: what was under way in it is over.
    pub(crate) fn delete(&mut self, number: u16, machine: &impl Machine) -> Result<(), Error> {
        for opcode in [admin::DELETE_SUBMISSIONS, admin::DELETE_COMPLETIONS] {
            let delete = Entry::admin(opcode, 0, [number.into(), 0, 0]);
            self.run(&delete, machine)?;
        }
        Ok(())
    }

    /// The controller has forgotten it.
    pub(crate) fn retire(&mut self) {
        if let Transport::Own(queue) = &mut self.transport {
            queue.retire();
        }
        self.page.retire();
    }
}
