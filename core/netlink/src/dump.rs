//! Answers of many messages: a buffer at a time, from wherever the caller's cursor stands.
//!
//! The caller keeps the cursor (a table's position, an object's number), for only it can say
//! what "further" means while objects come and go. It calls [`Dump::fill`] with an iterator
//! from there each time that the program reads, and moves the cursor by what was taken.

use crate::message::{Flags, Header};
use crate::writer::{Body, NoRoom, Writer};

const DONE: u16 = 3;

/// What can be an answer.
pub trait Emit {
    /// The message's type.
    fn kind(&self) -> u16;
    /// Writes what is behind the header.
    fn emit(&self, to: &mut Body);

    /// Appends the object as an answer of its own, for a request that named it or for
    /// those who listen to changes.
    fn answer(&self, sequence: u32, port: u32, to: &mut Writer) -> Result<(), NoRoom> {
        let header = Header {
            kind: self.kind(),
            flags: Flags::NONE,
            sequence,
            port,
        };
        to.message(header, |body| self.emit(body))
    }
}

/// A dump under way.
#[derive(Clone, Debug)]
pub struct Dump {
    sequence: u32,
    port: u32,
    /// Further flags of each message: [`Flags::DUMP_FILTERED`] if the caller leaves out what
    /// the request does not select, [`Flags::DUMP_INTERRUPTED`] from when objects changed.
    pub flags: Flags,
}

/// How far a call came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// That many objects are in the buffer; more are left.
    More {
        /// Objects.
        taken: usize,
    },
    /// All are in it, and the end's mark.
    Done,
    /// The buffer is empty and the next object does not fit: only a larger one helps.
    TooLarge,
}

impl Dump {
    /// The answer to a request of this header, to a socket whose number is `port`.
    pub fn new(request: &Header, port: u32) -> Self {
        Self {
            sequence: request.sequence,
            port,
            flags: Flags::NONE,
        }
    }

    fn header(&self, kind: u16) -> Header {
        Header {
            kind,
            flags: Flags::MULTI | self.flags,
            sequence: self.sequence,
            port: self.port,
        }
    }

    /// Appends objects as long as they fit, then the mark of the end if it fits too.
    pub fn fill<T: Emit>(&self, to: &mut Writer, objects: impl Iterator<Item = T>) -> Progress {
        let mut taken = 0;
        for object in objects {
            let header = self.header(object.kind());
            if to.message(header, |body| object.emit(body)).is_err() {
                return if to.is_empty() {
                    Progress::TooLarge
                } else {
                    Progress::More { taken }
                };
            }
            taken += 1;
        }
        let end = to.message(self.header(DONE), |body| {
            body.u32(0);
        });
        match end {
            Ok(()) => Progress::Done,
            Err(NoRoom) if to.is_empty() => Progress::TooLarge,
            Err(NoRoom) => Progress::More { taken },
        }
    }
}

impl<T: Emit> Emit for &T {
    fn kind(&self) -> u16 {
        (*self).kind()
    }

    fn emit(&self, to: &mut Body) {
        (*self).emit(to);
    }
}
