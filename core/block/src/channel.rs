//! What a driver provides.
//!
//! A device is a [`Control`], which starts and stops it, and a [`Channel`] for each of its queues. To
//! stop it ends all channels at once; starting it again makes new ones.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hal::Span;

use crate::limits::Limits;
use crate::question::{Question, Reply};
use crate::request::{Durability, Failure, Operation, SectorRange};
use crate::split;

/// Names a command under way; below [`Channel::depth`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(pub u16);

/// What a device is told: as much as its limits allow.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// What to do; a write is forced only where the device can.
    pub operation: Operation,
    /// Where.
    pub sectors: SectorRange,
    /// The memory, in order, as long as the sectors.
    pub spans: &'a [Span],
}

impl<'a> Command<'a> {
    /// A read, or an unforced write, of as many sectors from `first` on as `memory` is long.
    pub fn of_page(is_write: bool, first: u64, memory: &'a Span) -> Self {
        Self {
            operation: match is_write {
                false => Operation::Read,
                true => Operation::Write(Durability::Volatile),
            },
            sectors: split::sectors_of(first, *memory),
            spans: core::slice::from_ref(memory),
        }
    }
}

/// Why a command was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// Too many are under way.
    Full,
    /// It does not keep to the limits.
    TooLarge,
    /// The channel broke.
    Broken,
}

/// How a device says that a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Well.
    Done,
    /// With an error of the medium.
    Failed,
    /// The device does not know it.
    Unsupported,
}

impl Verdict {
    /// Why the request failed, if it did.
    #[inline]
    pub(crate) fn failure(self) -> Option<Failure> {
        match self {
            Self::Done => None,
            Self::Failed => Some(Failure::Medium),
            Self::Unsupported => Some(Failure::Unsupported),
        }
    }
}

/// The device does not keep to the rules; it has to be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

/// One queue of a device.
pub trait Channel {
    /// Commands under way at most; not zero.
    fn depth(&self) -> u16;

    /// Takes a command, which the device sees with the next [`publish`](Self::publish).
    fn submit(&mut self, command: &Command<'_>) -> Result<Tag, SubmitError>;

    /// The same for a read or an unforced write of whole sectors, as many as `memory` holds, which lies in one page: one call without
    /// anything in memory, since rings have many of them.
    #[inline]
    fn submit_page(
        &mut self,
        is_write: bool,
        first: u64,
        memory: Span,
    ) -> Result<Tag, SubmitError> {
        self.submit(&Command::of_page(is_write, first, &memory))
    }

    /// Shows the device what was submitted.
    fn publish(&mut self);

    /// The next command that ended.
    fn complete(&mut self) -> Result<Option<(Tag, Verdict)>, Broken>;

    /// Asks for an interrupt at the next end of a command. True if some ended already, for which
    /// none may come.
    fn arm(&mut self) -> bool;

    /// The device has been stopped: it touches no memory of the channel any more.
    fn retire(&mut self);
}

/// A channel as devices hand it out.
pub type ChannelBox = Box<dyn Channel + Send>;

impl<C: Channel + ?Sized> Channel for Box<C> {
    fn depth(&self) -> u16 {
        (**self).depth()
    }

    fn submit(&mut self, command: &Command<'_>) -> Result<Tag, SubmitError> {
        (**self).submit(command)
    }

    fn submit_page(
        &mut self,
        is_write: bool,
        first: u64,
        memory: Span,
    ) -> Result<Tag, SubmitError> {
        (**self).submit_page(is_write, first, memory)
    }

    fn publish(&mut self) {
        (**self).publish();
    }

    fn complete(&mut self) -> Result<Option<(Tag, Verdict)>, Broken> {
        (**self).complete()
    }

    fn arm(&mut self) -> bool {
        (**self).arm()
    }

    fn retire(&mut self) {
        (**self).retire();
    }
}

/// What is of the whole device.
pub trait Control {
    /// Its shape now.
    fn limits(&self) -> Limits;

    /// Asks for the shape anew: the size may have changed.
    fn refresh(&mut self) -> Limits;

    /// Asks what only this kind of device is asked; what it answers is put into `answer`.
    ///
    /// Errors: `Unsupported` if it knows no such questions, or the command may be more than one.
    fn ask(&mut self, _question: &Question, _answer: &mut [u8]) -> Result<Reply, Failure> {
        Err(Failure::Unsupported)
    }

    /// Stops the device: it touches no memory any more.
    fn stop(&mut self);

    /// Starts it after a stop, with new channels.
    fn start(&mut self) -> Result<Vec<ChannelBox>, Broken>;
}

/// A device that was brought up.
pub struct Parts {
    /// The whole.
    pub control: Box<dyn Control + Send>,
    /// Its queues, at least one.
    pub channels: Vec<ChannelBox>,
}
