//! Who is told that a message came into an empty queue (mq_notify(3)).
//!
//! One process at a time, once. A C library that is to start a thread hands in a netlink socket
//! of its own and a cookie, which it then receives from there.

use alloc::sync::{Arc, Weak};

use mach::mem::fallible;
use sync::{Error, Result};
use task::signal::{Info, Origin, Signal, code, send_to_process};
use task::{Pid, Process, current};

use kernel_netlink::NetlinkSocket;
use vfs::file::FileRef;

/// Bytes of a cookie; the kernel says with the last one what happened.
pub const COOKIE_BYTES: usize = 32;

/// What the last byte of a cookie says: there is a message, or the registration ended.
const WOKEN_UP: u8 = 1;
const REMOVED: u8 = 2;

/// How a process is told.
pub enum NotifyMethod {
    /// Not at all; nobody else is either.
    None,
    /// By a signal and the value that goes with it; `None` for signal 0, which nobody gets.
    Signal(Option<Signal>, u64),
    /// By a cookie through a netlink socket.
    Cookie(FileRef, [u8; COOKIE_BYTES]),
}

impl NotifyMethod {
    /// Through the socket `file`.
    ///
    /// Errors: `NotSocket`, `Invalid` if it is of another family.
    pub fn cookie(file: FileRef, cookie: [u8; COOKIE_BYTES]) -> Result<Self> {
        if file.as_socket().is_none() {
            return Err(Error::NotSocket);
        }
        match file.as_any().is::<NetlinkSocket>() {
            true => Ok(Self::Cookie(file, cookie)),
            false => Err(Error::Invalid),
        }
    }
}

/// The process that is to be told.
pub struct Registration {
    method: NotifyMethod,
    owner: Weak<Process>,
    /// As /proc and the file show it.
    pub owner_id: Pid,
}

impl Registration {
    /// Of the current process.
    pub fn new(method: NotifyMethod) -> Self {
        let process = &current().process;
        Self {
            method,
            owner: Arc::downgrade(process),
            owner_id: process.id(),
        }
    }

    /// Whether it is the current process'.
    pub fn is_own(&self) -> bool {
        core::ptr::eq(self.owner.as_ptr(), &*current().process)
    }

    /// The kind of notification and the signal, as sigevent(3) numbers them.
    pub fn numbers(&self) -> (u32, u32) {
        match &self.method {
            NotifyMethod::Signal(signal, _) => (0, signal.map_or(0, Signal::number)),
            NotifyMethod::None => (1, 0),
            NotifyMethod::Cookie(..) => (2, 0),
        }
    }

    /// There is a message.
    pub fn tell(self) {
        match self.method {
            NotifyMethod::Signal(Some(signal), value) => {
                if let Some(owner) = self.owner.upgrade() {
                    // A full queue loses it.
                    let _ = send_to_process(&owner, info(signal, value));
                }
            }
            NotifyMethod::Signal(None, _) | NotifyMethod::None => {}
            NotifyMethod::Cookie(file, cookie) => send_cookie(&file, cookie, WOKEN_UP),
        }
    }

    /// The process does not want to be told any more, or cannot.
    pub fn end(self) {
        if let NotifyMethod::Cookie(file, cookie) = self.method {
            send_cookie(&file, cookie, REMOVED);
        }
    }
}

fn info(signal: Signal, value: u64) -> Info {
    let me = current();
    Info {
        signal,
        code: code::MESSAGE,
        origin: Origin::Value {
            pid: me.process.id(),
            uid: me.credentials.with(|who| who.user.real),
            value,
        },
    }
}

fn send_cookie(file: &FileRef, mut cookie: [u8; COOKIE_BYTES], what: u8) {
    cookie[COOKIE_BYTES - 1] = what;
    // Without memory it is lost, as a datagram for a full socket is.
    if let (Some(socket), Ok(bytes)) = (
        file.as_any().downcast_ref::<NetlinkSocket>(),
        fallible::copied(&cookie),
    ) {
        socket.deliver(bytes);
    }
}
