//! signalfd: signals as records to be read.
//!
//! A read takes signals of the thread that reads and of its process, blocked or not.
//! Who polls asks for the current thread; changes are heard from the process that made
//! the file.

use alloc::string::String;
use alloc::sync::Arc;

use mach::sync::Spin;
use mm::io::Sink;
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};
use task::signal::{Info, Origin, SignalSet, pending_set, take};
use task::{Process, current};

use vfs::file::{File, OpenFile};

/// Bytes of a `struct signalfd_siginfo`.
const RECORD_BYTES: usize = 128;

/// The object of signalfd(2).
pub struct SignalFd {
    wanted: Spin<SignalSet>,
    process: Arc<Process>,
}

impl SignalFd {
    /// For the current process, of the signals `wanted`.
    pub fn new(wanted: SignalSet) -> Arc<Self> {
        let process = current().process.clone();
        Arc::new(Self {
            wanted: Spin::new(wanted.without(SignalSet::UNBLOCKABLE)),
            process,
        })
    }

    /// Reports other signals from now on.
    pub fn set(&self, wanted: SignalSet) {
        *self.wanted.lock() = wanted.without(SignalSet::UNBLOCKABLE);
        self.process.signals.pollee.notify(Events::READABLE);
    }

    fn take(&self) -> Option<Info> {
        let wanted = *self.wanted.lock();
        take(&current(), wanted)
    }
}

impl File for SignalFd {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        if to.remaining() < RECORD_BYTES {
            return Err(Error::Invalid);
        }
        let first = match open.is_nonblocking() {
            true => self.take().ok_or(Error::WouldBlock)?,
            false => {
                let process = current().process.clone();
                process
                    .signals
                    .pollee
                    .queue
                    .wait(Wait::INTERRUPTIBLE, || self.take())?
            }
        };
        let mut done = to.put_whole(&encode(&first))?;
        while to.remaining() >= RECORD_BYTES
            && let Some(info) = self.take()
        {
            match to.put_whole(&encode(&info)) {
                Ok(count) => done += count,
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn poll(&self) -> Events {
        let wanted = *self.wanted.lock();
        let pending = pending_set(&current());
        if (pending & wanted) == SignalSet::EMPTY {
            Events::empty()
        } else {
            Events::READABLE
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.process.signals.pollee)
    }

    fn label(&self) -> String {
        String::from("anon_inode:[signalfd]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// `struct signalfd_siginfo` (include/uapi/linux/signalfd.h).
fn encode(info: &Info) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    let mut word = |index: usize, value: u32| {
        record[index * 4..index * 4 + 4].copy_from_slice(&value.to_ne_bytes());
    };
    word(0, info.signal.number());
    word(2, info.code as u32);
    match info.origin {
        Origin::Kernel => {}
        Origin::Process { pid, uid } => {
            word(3, pid);
            word(4, uid);
        }
        Origin::Value { pid, uid, value } => {
            word(3, pid);
            word(4, uid);
            word(11, value as u32);
            word(12, value as u32);
            word(13, (value >> 32) as u32);
        }
        Origin::Timer { id, overrun, value } => {
            word(6, id);
            word(8, overrun);
            word(11, value as u32);
            word(12, value as u32);
            word(13, (value >> 32) as u32);
        }
        Origin::Child {
            pid, uid, status, ..
        } => {
            word(3, pid);
            word(4, uid);
            word(10, status);
        }
        Origin::Fault { address, .. } => {
            word(18, address as u32);
            word(19, (address >> 32) as u32);
        }
        Origin::Call {
            address,
            number,
            architecture,
            reason,
        } => {
            word(1, reason.into());
            word(21, number);
            word(22, address as u32);
            word(23, (address >> 32) as u32);
            word(24, architecture);
        }
        Origin::File { fd, band } => {
            word(5, fd);
            word(7, band);
        }
    }
    record
}
