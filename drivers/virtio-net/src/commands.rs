//! The control queue (section 5.1.6.5): one command at a time, waited for.
//!
//! A command is two buffers: class, number and data for the device to read, and one byte
//! for its answer. Commands are rare and are given while a card starts, so their end is
//! polled for. A look at the end is a look at the device's status, which a hypervisor
//! serves itself: so it gets its turn, and a device that has failed is noticed.
//! A device that does not answer keeps the two buffers, and no more commands are given.

use hal::{DmaSource, Span};
use mbuf::{Mbuf, Pool};
use virtio::{Doorbell, Error, NO_VECTOR, QueueShape, Transport};
use virtq::{Part, Queue};

/// Commands with the device at most; each is two descriptors.
const QUEUE_SIZE: u16 = 2;
/// Looks at a command until it is given up; each is an exit to the hypervisor.
const LOOKS_MAX: u32 = 1_000_000;
/// The device's answer to what it has done.
const OK: u8 = 0;

/// What a command is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    pub(crate) class: u8,
    pub(crate) number: u8,
}

/// Why a command was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandError {
    /// No buffers, or more data than fit into one.
    NoMemory,
    /// The device said no.
    Refused,
    /// The device has not answered, now or earlier.
    NoAnswer,
}

/// The driver's side of the control queue.
pub(crate) struct Commands {
    queue: Queue,
    doorbell: Doorbell,
    pool: &'static (dyn Pool + Sync),
    /// The command that the device has, and the room for its answer.
    given: Option<(Mbuf, Mbuf)>,
}

impl Commands {
    pub(crate) fn new(
        transport: &Transport,
        index: u16,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        let shape = QueueShape {
            index,
            size_max: QUEUE_SIZE,
            vector: NO_VECTOR,
            event_index: false,
        };
        let (queue, doorbell) = transport.make_queue(memory, shape)?;
        Ok(Self {
            doorbell,
            queue,
            pool,
            given: None,
        })
    }

    /// Has the device carry `command` out.
    pub(crate) fn run(
        &mut self,
        transport: &Transport,
        command: Command,
        data: &[&[u8]],
    ) -> Result<(), CommandError> {
        self.give(command, data)?;
        for _ in 0..LOOKS_MAX {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            if !transport.is_running() {
                break;
            }
        }
        Err(CommandError::NoAnswer)
    }

    /// Shows the device a command.
    pub(crate) fn give(&mut self, command: Command, data: &[&[u8]]) -> Result<(), CommandError> {
        if self.given.is_some() {
            return Err(CommandError::NoAnswer);
        }
        let mut request = self.pool.alloc().ok_or(CommandError::NoMemory)?;
        let answer = self.pool.alloc().ok_or(CommandError::NoMemory)?;
        let head = [command.class, command.number];
        for piece in core::iter::once(&head[..]).chain(data.iter().copied()) {
            if request.append(piece) < piece.len() {
                return Err(CommandError::NoMemory);
            }
        }
        let parts = [
            Part::Read(Span::of(&request)),
            Part::Write(Span::room_of(&answer)),
        ];
        let added = self.queue.add(parts);
        added.map_err(|_| CommandError::NoAnswer)?;
        self.given = Some((request, answer));
        if self.queue.publish() {
            self.doorbell.ring();
        }
        Ok(())
    }

    /// What became of the command that was given; `None` while the device is at it.
    pub(crate) fn outcome(&mut self) -> Option<Result<(), CommandError>> {
        match self.queue.take() {
            Ok(None) => None,
            Err(_) => Some(Err(CommandError::NoAnswer)),
            Ok(Some(used)) => {
                let (_, mut answer) = self.given.take()?;
                answer.extend(used.written as usize);
                Some(match answer.bytes().first() {
                    Some(&OK) => Ok(()),
                    _ => Err(CommandError::Refused),
                })
            }
        }
    }

    /// The device has been reset.
    pub(crate) fn retire(&mut self) {
        self.queue.retire();
    }

    /// The device goes on: it keeps the rings and the command for good.
    pub(crate) fn abandon(&mut self) {
        core::mem::forget(self.given.take());
    }
}
