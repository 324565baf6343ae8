//! A stream of the host as a file: what a pipe is to a program that was started there.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use base::VirtAddr;
use mm::io::{Sink, Source};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::ports::HostStream;
use vfs::file::next_number;
use vfs::file::{File, OpenFile};
use vfs::{FileType, Metadata};

/// Bytes that could be read, stored as a C `int` (ioctl_fionread).
const FIONREAD: u32 = 0x541b;

/// An open file of streams of the host: of one, or of one for each direction (/dev/console).
pub(super) struct StreamFile {
    number: u64,
    input: Option<&'static HostStream>,
    output: Option<&'static HostStream>,
}

impl StreamFile {
    /// Opens streams; closed when dropped.
    pub(super) fn new(
        input: Option<&'static HostStream>,
        output: Option<&'static HostStream>,
    ) -> Arc<Self> {
        let file = Self {
            number: next_number(),
            input,
            output,
        };
        file.streams().for_each(HostStream::enter);
        Arc::new(file)
    }

    fn streams(&self) -> impl Iterator<Item = &'static HostStream> {
        self.input.into_iter().chain(self.output)
    }
}

impl File for StreamFile {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let input = self.input.ok_or(Error::BadFile)?;
        input.read(to, open.is_nonblocking())
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let output = self.output.ok_or(Error::BadFile)?;
        output.write(from, open.is_nonblocking())
    }

    fn poll(&self) -> Events {
        let input = self.input.map(HostStream::poll_reader);
        let output = self.output.map(HostStream::poll_writer);
        input.unwrap_or_default() | output.unwrap_or_default()
    }

    fn pollee(&self) -> Option<&Pollee> {
        self.streams().next().map(|stream| &stream.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match (request, self.input) {
            (FIONREAD, Some(input)) => {
                user::write(VirtAddr(argument), input.readable() as u32)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        let number = self.number;
        Ok(Metadata {
            number,
            // The machine's program may be any user, and opens its /dev/stdout all the same.
            mode: 0o666,
            ..Metadata::anonymous(FileType::Fifo)
        })
    }

    fn label(&self) -> String {
        format!("pipe:[{}]", self.number)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Drop for StreamFile {
    fn drop(&mut self) {
        self.streams().for_each(HostStream::leave);
    }
}
