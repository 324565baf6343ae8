//! A channel whose input and output this program has itself: files on their way (`core/agent`'s trees).

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use agent::{Decoder, Message, PAYLOAD_BYTES_MAX, Refusal, Request, WINDOW_BYTES};

use super::client::{CHANNEL, Client, Credit};
use super::next_frame;
use crate::failure::Failure;

/// How a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exit(u8),
    /// It did not begin.
    Refused(Refusal),
    /// The machine has ended, or its session.
    Lost,
}

/// A channel from the request on. Reading gives what the machine sends.
pub struct Call {
    client: Client,
    stream: UnixStream,
    decoder: Decoder,
    credit: Arc<Credit>,
    pending: Vec<u8>,
    /// So many of them are read.
    done: usize,
    ending: Option<Ending>,
}

impl Call {
    /// Begins one in the machine `name`; `None` if the request is too long.
    ///
    /// Errors: there is no such machine, or nobody can enter it.
    pub fn begin(name: &str, request: &Request<'_>) -> Result<Option<Self>, Failure> {
        let Some(encoded) = request.encode() else {
            return Ok(None);
        };
        let (client, stream) = Client::connect(name)?;
        let credit = Arc::new(Credit::default());
        credit.grant(WINDOW_BYTES as usize);
        // A session that has just ended is heard of when its answer is read.
        let _ = client.ask(&encoded);
        Ok(Some(Self {
            client,
            stream,
            decoder: Decoder::default(),
            credit,
            pending: Vec::new(),
            done: 0,
            ending: None,
        }))
    }

    /// Where input goes, for another thread.
    pub fn input(&self) -> Input {
        Input {
            client: self.client.clone(),
            credit: self.credit.clone(),
        }
    }

    /// What ends the call from elsewhere: reading finds its end then.
    pub fn cutter(&self) -> io::Result<impl FnOnce() + Send + use<>> {
        let stream = self.stream.try_clone()?;
        Ok(move || {
            // One that has ended needs no end.
            let _ = stream.shutdown(Shutdown::Both);
        })
    }

    /// How it ended, which is known when reading has found the end.
    pub fn ending(&self) -> Ending {
        self.ending.unwrap_or(Ending::Lost)
    }

    fn end(&mut self, how: Ending) {
        self.ending = Some(how);
        // Nobody waits for credit any more.
        self.credit.grant(usize::MAX / 2);
    }

    /// Waits until something can be read, or for the end.
    fn fill(&mut self) {
        while self.done == self.pending.len() && self.ending.is_none() {
            let frame = next_frame(&mut self.stream, &mut self.decoder);
            let Ok(Some(frame)) = frame else {
                return self.end(Ending::Lost);
            };
            match frame.message {
                Message::Exit(status) => return self.end(Ending::Exit(status)),
                Message::Refused(reason) => return self.end(Ending::Refused(reason)),
                Message::Credit(bytes) => self.credit.grant(bytes as usize),
                Message::Stdout(bytes) => {
                    self.pending.clear();
                    self.pending.extend_from_slice(bytes);
                    self.done = 0;
                }
                _ => {}
            }
        }
    }
}

impl Read for Call {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.fill();
        let rest = &self.pending[self.done..];
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        self.done += count;
        if count != 0 {
            // A session that has just ended is heard of by its socket.
            let _ = self.client.say(CHANNEL, Message::Credit(count as u32));
        }
        Ok(count)
    }
}

/// The input of a [`Call`].
pub struct Input {
    client: Client,
    credit: Arc<Credit>,
}

impl Input {
    /// Nothing more comes.
    pub fn end(&self) {
        // A session that has ended knows.
        let _ = self.client.say(CHANNEL, Message::StdinEnd);
    }
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let count = self.credit.take(bytes.len().min(PAYLOAD_BYTES_MAX));
        let said = self.client.say(CHANNEL, Message::Stdin(&bytes[..count]));
        said.map_err(|_| io::Error::from(ErrorKind::BrokenPipe))?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
