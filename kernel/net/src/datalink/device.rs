//! /dev/linkctl: one write takes a request, the next read gives its answer.
//!
//! Anybody may look; who changes links needs CAP_NET_ADMIN.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cred::Capability;
use linkctl::{MESSAGE_BYTES_MAX, Rights};
use mm::io::{Sink, Source};
use sync::{Error, Mutex, Result};

use super::change;
use vfs::devices::{Device, register as add};
use vfs::file::{File, OpenFile};

/// Linux's major number of miscellaneous devices, and a minor from its dynamic range.
const MAJOR: u32 = 10;
const MINOR: u32 = 241;

/// Adds /dev/linkctl.
pub fn register() {
    add(Device {
        name: "linkctl",
        major: MAJOR,
        minors: (MINOR, MINOR),
        mode: 0o666,
        open: |_, _| Ok(Arc::new(Conversation::default())),
    });
}

/// One open file, with the answer that was not read yet.
#[derive(Default)]
struct Conversation(Mutex<Vec<u8>>);

impl File for Conversation {
    /// Errors: `MessageTooLong`; the answer is gone where the program has too little room.
    fn read(&self, _open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let answer = core::mem::take(&mut *self.0.lock());
        match answer.len() > to.remaining() {
            true => Err(Error::MessageTooLong),
            false => to.put_whole(&answer),
        }
    }

    /// Errors: `MessageTooLong`.
    fn write(&self, _open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let len = from.remaining();
        if len > MESSAGE_BYTES_MAX {
            return Err(Error::MessageTooLong);
        }
        let mut request = vec![0; len];
        from.take_whole(&mut request)?;
        let credentials = cred::credentials().get();
        let rights = match credentials.require(Capability::NetAdmin) {
            Ok(()) => Rights::Change,
            Err(_) => Rights::Look,
        };
        *self.0.lock() = change::answer_to(&request, rights);
        Ok(len)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
