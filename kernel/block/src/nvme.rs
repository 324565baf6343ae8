//! What ioctl(2) asks of NVMe disks alone (include/uapi/linux/nvme_ioctl.h): `nvme id-ctrl` and its like.
//!
//! Commands that only ask are passed on, for who administrates the machine, and those that rule virtual functions
//! (`nvme virt-mgmt`, `attach-ns`, `detach-ns`); what else changes the device is not.

use alloc::vec::Vec;
use core::cmp::min;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use block::{Question, Reply};
use mach::mem::fallible::TryGrow;
use mm::user;
use sync::{Error, Result};

use crate::disk::Disk;
use crate::failure::error_of;
use crate::nodes::Family;
use crate::requests::require_admin;

const NVME_IOCTL_ID: u32 = 0x4e40;
const NVME_IOCTL_ADMIN_CMD: u32 = 0xc048_4e41;
/// In an opcode: the command takes the data.
const HOST_TO_CONTROLLER: u8 = 1 << 0;
/// `struct nvme_passthru_cmd`, eight bytes each, and where in it the result stands.
const COMMAND_QUADS: usize = 9;
const RESULT: u64 = 68;

/// The call's result.
pub(crate) fn answer(disk: &Disk, request: u32, at: VirtAddr) -> Result<usize> {
    let Family::Nvme { namespace, .. } = disk.family() else {
        return Err(Error::NotTerminal);
    };
    match request {
        NVME_IOCTL_ID => Ok(namespace as usize),
        NVME_IOCTL_ADMIN_CMD => require_admin().and_then(|()| pass_on(disk, at)),
        _ => Err(Error::NotTerminal),
    }
}

/// Returns the status that the device says.
fn pass_on(disk: &Disk, at: VirtAddr) -> Result<usize> {
    let quads: [u64; COMMAND_QUADS] = user::read(at)?;
    let [first, _, _, data, lengths, word_10, word_12, word_14, _] = quads;
    let both = |quad: u64| [quad as u32, (quad >> 32) as u32];
    let [_, len] = both(lengths);
    let ([a, b], [c, d], [e, f]) = (both(word_10), both(word_12), both(word_14));
    let question = Question {
        opcode: first as u8,
        namespace: (first >> 32) as u32,
        words: [a, b, c, d, e, f],
    };
    let len = min(len as usize, PAGE_BYTES + 1);
    let mut bytes = Vec::new();
    bytes.make_room(len)?;
    bytes.resize(len, 0);
    let takes_data = question.opcode & HOST_TO_CONTROLLER != 0;
    if takes_data {
        user::copy_in(VirtAddr(data), &mut bytes)?;
    }
    let Reply { status, result } = disk.ask(&question, &mut bytes).map_err(error_of)?;
    if !takes_data {
        user::copy_out(&bytes, VirtAddr(data))?;
    }
    user::write(at.checked_add(RESULT).ok_or(Error::BadAddress)?, result)?;
    Ok(status.into())
}

/// Identify of a controller, and where in it texts lie.
const IDENTIFY: u8 = 0x06;
const IDENTIFY_CONTROLLER: u32 = 1;
/// Its serial number.
pub const SERIAL: Range<usize> = 4..24;
/// What it is sold as.
pub const MODEL: Range<usize> = 24..64;
/// The version of its program.
pub const FIRMWARE: Range<usize> = 64..72;

/// What the controller of a disk says of itself at a place below 4096, padded with blanks as it does.
pub fn identity(disk: &Disk, place: Range<usize>) -> Result<Vec<u8>> {
    let question = Question {
        opcode: IDENTIFY,
        namespace: 0,
        words: [IDENTIFY_CONTROLLER, 0, 0, 0, 0, 0],
    };
    let mut bytes = Vec::new();
    bytes.make_room(PAGE_BYTES)?;
    bytes.resize(PAGE_BYTES, 0);
    let reply = disk.ask(&question, &mut bytes).map_err(error_of)?;
    if reply.status != 0 {
        return Err(Error::Io);
    }
    bytes.truncate(place.end);
    bytes.drain(..place.start);
    let unprintable = |byte: &&mut u8| !(b' '..=b'~').contains(*byte);
    bytes
        .iter_mut()
        .filter(unprintable)
        .for_each(|byte| *byte = b'?');
    Ok(bytes)
}
