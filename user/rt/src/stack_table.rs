//! The memory in which a program shows the sockets of its stack (`/dev/stacktable`, `inet::stack_table`).

use std::fs::{File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::ring::RingMemory;

const DEVICE: &str = "/dev/stacktable";
/// `_IOW(0xda, 16, struct stack_table)` and `_IO(0xda, 17)`.
const ATTACH: libc::c_ulong = 0x4018_da10;
const ANSWER: libc::c_ulong = 0xda11;
const NAME_BYTES: usize = 16;

/// `struct stack_table`.
#[repr(C)]
struct Attach {
    address: [u8; 4],
    rows: u32,
    link: [u8; NAME_BYTES],
}

/// A table's file and memory; the table is gone with the file.
#[derive(Debug)]
pub struct TableMemory {
    /// Before the file: it is mapped no longer than that is open.
    memory: RingMemory,
    file: OwnedFd,
}

impl TableMemory {
    /// A table of so many rows and bytes for the sockets of an address on a link that the program has.
    ///
    /// Errors: those of the system: no such device, no right to, an address that is the machine's.
    pub fn open(link: &str, address: Ipv4Addr, rows: u32, bytes: usize) -> io::Result<Self> {
        if link.len() >= NAME_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attach = Attach {
            address: address.octets(),
            rows,
            link: [0; NAME_BYTES],
        };
        attach.link[..link.len()].copy_from_slice(link.as_bytes());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(DEVICE)
            .map(File::into)?;
        let file: OwnedFd = file;
        // SAFETY: the request reads an `Attach`.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), ATTACH, &raw const attach) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        let memory = RingMemory::map(file.as_fd(), bytes, 0)?;
        Ok(Self { memory, file })
    }

    /// Its memory.
    pub fn memory(&self) -> &RingMemory {
        &self.memory
    }

    /// Who asked reads on: what is there is up to date.
    pub fn tell_answered(&self) {
        // SAFETY: no memory is passed. A file of ours does not refuse it.
        unsafe { libc::ioctl(self.file.as_raw_fd(), ANSWER) };
    }
}

/// Readable while somebody looks who has no answer yet.
impl AsFd for TableMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
