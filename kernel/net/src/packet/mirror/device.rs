//! /dev/portmirror: a program that drives a card shows its frames.
//!
//! | call | what |
//! |---|---|
//! | open(2) | a file without a mirror |
//! | `ioctl(fd, _IOW(0xda, 32, struct mirror), &mirror)` | makes it, and its interface; needs CAP_NET_ADMIN |
//! | mmap(2), shared, at 0 | a page; its first word is not 0 while frames are to be shown |
//! | write(2), writev(2) | shows a frame: a byte of flags, 1 for one that the card sends, 2 for one whose checksum is left to the card; three bytes that say nothing; the frame from its Ethernet header on |
//!
//! ```c
//! struct mirror { char place[16]; uint8_t station[6]; uint16_t mtu; };
//! ```

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::ops::Range;

use base::VirtAddr;
use cred::Capability;
use mach::mem::fallible;
use mach::sync::Once;
use mm::io::Source;
use mm::{MemoryObject, Window, user};
use sync::{Error, Result};
use vfs::devices::{Device, register as add};
use vfs::file::{File, OpenFile};
use wire::{ETHERNET_HEADER_BYTES, MacAddr};

use super::{Mirror, Passing, name};
use crate::packet::chain_of;
use crate::stack::current_stack;

/// Linux's major number of miscellaneous devices, and a minor from its dynamic range.
const MAJOR: u32 = 10;
const MINOR: u32 = 243;

/// `_IOW(0xda, 32, struct mirror)`.
const ATTACH: u32 = 0x4018_da20;
/// `struct mirror`.
const ATTACH_BYTES: usize = 24;

/// In front of a frame.
const HEADER_BYTES: usize = 4;
const OUTGOING: u8 = 1;
const PARTIAL_SUM: u8 = 2;
/// A segment that the card is to cut is no longer, with its headers.
const FRAME_BYTES_MAX: usize = (1 << 16) + 64;

/// Adds /dev/portmirror.
pub fn register() {
    add(Device {
        name: "portmirror",
        major: MAJOR,
        minors: (MINOR, MINOR),
        mode: 0o666,
        open: |_, _| Ok(fallible::arc(MirrorFile::default())?),
    });
}

/// An open file, and its mirror; dropped, the mirror is gone.
#[derive(Default)]
struct MirrorFile(Once<Mirror>);

impl MirrorFile {
    /// Errors: `NotPermitted`, `BadAddress`, `Invalid` for what is no place, `Busy` if it has one, and those of
    /// [`Mirror::new`].
    fn attach(&self, argument: u64) -> Result<()> {
        cred::credentials().get().require(Capability::NetAdmin)?;
        let mut bytes = [0; ATTACH_BYTES];
        user::copy_in(VirtAddr(argument), &mut bytes)?;
        let [place @ .., a, b, c, d, e, f, low, high] = bytes;
        let end = place.iter().position(|byte| *byte == 0);
        let place = end.and_then(|end| core::str::from_utf8(place.get(..end)?).ok());
        let name = place.and_then(name::of_place).ok_or(Error::Invalid)?;
        let station = MacAddr([a, b, c, d, e, f]);
        let mtu = u16::from_ne_bytes([low, high]);
        let mirror = Mirror::new(current_stack(), name, station, mtu)?;
        self.0.set(mirror).map_err(|_| Error::Busy)
    }

    fn mirror(&self) -> Result<&Mirror> {
        self.0.get().ok_or(Error::NoSuchDevice)
    }
}

impl File for MirrorFile {
    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            ATTACH => self.attach(argument).map(|()| 0),
            _ => Err(Error::NotTerminal),
        }
    }

    /// Errors: `NoSuchDevice` without a mirror, `Invalid` for less than a header, `MessageTooLong`, `NoBuffers`, `BadAddress`.
    fn write(&self, _open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let mirror = self.mirror()?;
        let len = from.remaining();
        if len > HEADER_BYTES + FRAME_BYTES_MAX {
            return Err(Error::MessageTooLong);
        }
        if len < HEADER_BYTES + ETHERNET_HEADER_BYTES {
            return Err(Error::Invalid);
        }
        let mut header = [0; HEADER_BYTES];
        from.take_whole(&mut header)?;
        let [flags, ..] = header;
        let how = Passing {
            is_outgoing: flags & OUTGOING != 0,
            is_sum_partial: flags & PARTIAL_SUM != 0,
        };
        mirror.show(chain_of(from)?, how);
        Ok(len)
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        if !is_shared {
            return Err(Error::Invalid);
        }
        let page = self.mirror()?.page.clone();
        Ok(Window::new(page, range.start, range.end - range.start)?)
    }

    fn label(&self) -> String {
        String::from("/dev/portmirror")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
