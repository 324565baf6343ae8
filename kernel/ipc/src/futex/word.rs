//! Words of the current program's memory.

use ::futex::{Refusal, Stop};
use base::VirtAddr;
use mach::mem::{self, Fault};
use mm::Access;
use mm::user;
use sync::{Error, Result};

/// The word at an address that is divisible by 4.
#[derive(Clone, Copy, Debug)]
pub struct UserWord(pub VirtAddr);

/// A word and what it is known by.
pub type Place = ::futex::pi::Place<UserWord>;

impl ::futex::Word for UserWord {
    type Fault = Fault;

    fn load(&self) -> core::result::Result<u32, Fault> {
        mem::load_user_u32(self.0)
    }

    fn compare_exchange(&self, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        mem::compare_exchange_user_u32(self.0, old, new)
    }
}

/// Does something with a word, and again after a page that was missing has come.
pub(super) fn repeat<T>(
    access: Access,
    mut act: impl FnMut() -> core::result::Result<T, Stop<Fault>>,
) -> Result<T> {
    loop {
        match act() {
            Ok(value) => return Ok(value),
            Err(Stop::Refused(refusal)) => return Err(error(refusal)),
            Err(Stop::Fault(fault)) => user::resolve(fault.addr, access)?,
        }
    }
}

fn error(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Changed | Refusal::Taken => Error::WouldBlock,
        Refusal::Deadlock => Error::Deadlock,
        Refusal::NoOwner => Error::NoSuchProcess,
        Refusal::Inconsistent => Error::Invalid,
        Refusal::NotOwner => Error::NotPermitted,
        Refusal::OutOfMemory => Error::OutOfMemory,
    }
}
