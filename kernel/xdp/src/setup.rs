//! What a program sets up before it takes a link.

use alloc::sync::Arc;
use core::ops::Range;

use mach::mem::fallible;
use mm::{MemoryObject, Window};
use sync::{Error, Result};
use vfs::socket::{OptionName, OptionValue};
use xdp::Entry;

use crate::ring::Ring;
use crate::umem::Umem;

/// Where mmap(2) finds the rings (XDP_PGOFF_*, XDP_UMEM_PGOFF_*).
const RECEIVE_OFFSET: u64 = 0;
const SEND_OFFSET: u64 = 0x8000_0000;
const FILL_OFFSET: u64 = 0x1_0000_0000;
const COMPLETION_OFFSET: u64 = 0x1_8000_0000;

/// The rings and the memory, each of which is set once.
#[derive(Default)]
pub struct Setup {
    /// The program's memory.
    pub umem: Option<Arc<Umem>>,
    /// Chunks that may be written to.
    pub fill: Option<Ring>,
    /// Chunks whose frames are sent.
    pub completion: Option<Ring>,
    /// Received frames.
    pub receive: Option<Ring>,
    /// Frames to send.
    pub send: Option<Ring>,
}

impl Setup {
    /// Sets one of them.
    ///
    /// Errors: `Busy` where there is memory already, `Invalid` where there is such a ring; those of
    /// [`Umem::new`] and [`Ring::new`]; `NoSuchOption`.
    pub fn set(&mut self, name: OptionName, value: OptionValue) -> Result<()> {
        if let (OptionName::Umem, OptionValue::Umem(request)) = (name, value) {
            if self.umem.is_some() {
                return Err(Error::Busy);
            }
            self.umem = Some(fallible::arc(Umem::new(&request)?)?);
            return Ok(());
        }
        let (ring, entry) = match name {
            OptionName::FillRing => (&mut self.fill, Entry::Address),
            OptionName::CompletionRing => (&mut self.completion, Entry::Address),
            OptionName::XdpReceiveRing => (&mut self.receive, Entry::Descriptor),
            OptionName::XdpSendRing => (&mut self.send, Entry::Descriptor),
            _ => return Err(Error::NoSuchOption),
        };
        if ring.is_some() {
            return Err(Error::Invalid);
        }
        *ring = Some(Ring::new(value.number()?, entry)?);
        Ok(())
    }

    /// The ring that is mapped at an offset.
    ///
    /// Errors: `Invalid` without one, or for more than it has.
    pub fn map(&self, range: Range<u64>) -> Result<Arc<dyn MemoryObject>> {
        let ring = match range.start {
            RECEIVE_OFFSET => &self.receive,
            SEND_OFFSET => &self.send,
            FILL_OFFSET => &self.fill,
            COMPLETION_OFFSET => &self.completion,
            _ => return Err(Error::Invalid),
        };
        let memory = ring.as_ref().ok_or(Error::Invalid)?.memory.clone();
        let bytes = range.end - range.start;
        Ok(Window::new(memory, range.start, bytes)?)
    }
}
