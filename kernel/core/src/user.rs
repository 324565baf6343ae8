//! The only door to a program's memory.
//!
//! A copy first just tries; where the machine reports a fault, the address space resolves
//! it in ordinary context (it may read a file) and the copy goes on from there. So all
//! these functions may block: no spin lock is held across them.

use base::VirtAddr;
use mach::mem::{self, Pod};

use crate::error::{Error, Result};
use crate::mm::Access;
use crate::task::current;

/// Fills `to` from the program's memory at `from`.
pub fn copy_in(from: VirtAddr, to: &mut [u8]) -> Result<()> {
    let mut done = 0;
    loop {
        match mem::copy_from_user(&mut to[done..], from + done as u64) {
            Ok(()) => return Ok(()),
            Err(fault) => {
                done += fault.done;
                resolve(fault.address, Access::Read)?;
            }
        }
    }
}

/// Stores `from` in the program's memory at `to`.
pub fn copy_out(from: &[u8], to: VirtAddr) -> Result<()> {
    let mut done = 0;
    loop {
        match mem::copy_to_user(to + done as u64, &from[done..]) {
            Ok(()) => return Ok(()),
            Err(fault) => {
                done += fault.done;
                resolve(fault.address, Access::Write)?;
            }
        }
    }
}

/// Reads one value of plain data.
pub fn read<T: Pod>(from: VirtAddr) -> Result<T> {
    let mut value = T::new_zeroed();
    copy_in(from, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes one value of plain data.
pub fn write<T: Pod>(to: VirtAddr, value: T) -> Result<()> {
    copy_out(value.as_bytes(), to)
}

/// Resolves a fault of the kernel's own access to a program's memory.
pub(crate) fn resolve(address: VirtAddr, access: Access) -> Result<()> {
    let space = current().process.space.get();
    space.fault(address, access).map_err(|_| Error::BadAddress)
}
