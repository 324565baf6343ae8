//! Frames from and to the host, over the port that it has for them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use agent::{Decoder, FRAME_BYTES_MAX, Frame, Malformed, Message};
use mach::mem::fallible;
use mm::io::{Sink, Source};
use sync::poll::Events;
use sync::{Error, Result};
use vfs::file::poll::Watched;
use vfs::file::{OpenFile, StatusFlags};

/// What comes next from the host.
pub(crate) enum Received<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Nothing yet.
    Nothing,
    /// Nothing ever again.
    End,
}

pub(crate) struct Port {
    open: Arc<OpenFile>,
    decoder: Decoder,
    encoded: Vec<u8>,
}

impl Port {
    /// The machine's; `None` if it has none.
    ///
    /// Errors: `OutOfMemory`.
    pub(crate) fn open() -> Result<Option<Self>> {
        let Some(file) = tty::console::agent_port() else {
            return Ok(None);
        };
        Ok(Some(Self {
            open: OpenFile::new(file, StatusFlags::RDWR | StatusFlags::NONBLOCK),
            decoder: Decoder::in_buffer(fallible::zeroed(FRAME_BYTES_MAX)?),
            encoded: fallible::vec(FRAME_BYTES_MAX)?,
        }))
    }

    /// Takes the next frame, if it has come.
    pub(crate) fn receive(&mut self) -> core::result::Result<Received<'_>, Malformed> {
        loop {
            let mut to = Sink::kernel(self.decoder.wanted());
            match self.open.file.read(&self.open, &mut to) {
                Ok(0) => return Ok(Received::End),
                Err(Error::WouldBlock) => return Ok(Received::Nothing),
                Err(_) => return Ok(Received::End),
                Ok(count) => {
                    if self.decoder.note(count)? {
                        return self.decoder.frame().map(Received::Frame);
                    }
                }
            }
        }
    }

    /// Whether a frame can be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.open.file.poll().contains(Events::WRITABLE)
    }

    /// Sends a frame, for which there is room.
    pub(crate) fn send(&mut self, channel: u16, message: Message<'_>) {
        // It fits into the buffer, whose room was reserved, and into the device's.
        Frame { channel, message }.encode(&mut self.encoded);
        let mut from = Source::kernel(&self.encoded);
        if !self.open.file.poll().contains(Events::ERR) {
            // The host has just let go: it wants to hear nothing more.
            let _ = self.open.file.write(&self.open, &mut from);
        }
    }

    /// What to sleep for.
    pub(crate) fn watched(&self) -> Watched {
        let interest = match self.has_room() {
            true => Events::READABLE,
            false => Events::WRITABLE,
        };
        Watched {
            open: Some(self.open.clone()),
            interest,
            ready: Events::empty(),
        }
    }
}
