//! /dev/stacktable: a program gets a table for the sockets of its stack.
//!
//! | call | what |
//! |---|---|
//! | open(2) | a file without a table |
//! | `ioctl(fd, _IOW(0xda, 16, struct stack_table), &table)` | makes it; needs CAP_NET_ADMIN |
//! | mmap(2), shared, at 0 | the table |
//! | poll(2) | readable while somebody looks who has no answer yet |
//! | `ioctl(fd, _IO(0xda, 17))` | it was answered |
//!
//! ```c
//! struct stack_table { uint8_t address[4]; uint32_t rows; char link[16]; };
//! ```

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::net::Ipv4Addr;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64};

use base::VirtAddr;
use cred::Capability;
use inet::stack_table::{ROWS_MAX, StackTable};
use mach::mem::fallible;
use mach::sync::Once;
use mm::{MemoryObject, Window, user};
use net::current_stack;
use sockets::ring_memory;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::current;
use vfs::devices::{Device, register as add};
use vfs::file::{File, OpenFile};
use vfs::socket::InterfaceName;

use super::{ANSWERS, Published, publish, withdraw};

/// Linux's major number of miscellaneous devices, and a minor from its dynamic range.
const MAJOR: u32 = 10;
const MINOR: u32 = 242;

/// `_IOW(0xda, 16, struct stack_table)` and `_IO(0xda, 17)`.
const ATTACH: u32 = 0x4018_da10;
const ANSWER: u32 = 0xda11;
/// `struct stack_table`.
const ATTACH_BYTES: usize = 24;

/// Adds /dev/stacktable.
pub fn register() {
    add(Device {
        name: "stacktable",
        major: MAJOR,
        minors: (MINOR, MINOR),
        mode: 0o666,
        open: |_, _| Ok(fallible::arc(TableFile::default())?),
    });
}

/// An open file, and its table; dropped, the table is gone.
#[derive(Default)]
struct TableFile {
    table: Once<Arc<Published>>,
}

impl TableFile {
    /// Errors: `NotPermitted`, `BadAddress`, `Invalid` for what cannot be, `Busy` if it has one, `OutOfMemory`, and those of
    /// [`publish`].
    fn attach(&self, argument: u64) -> Result<()> {
        cred::credentials().get().require(Capability::NetAdmin)?;
        let mut bytes = [0; ATTACH_BYTES];
        user::copy_in(VirtAddr(argument), &mut bytes)?;
        let of = current_stack();
        let wanted = parse(&bytes).ok_or(Error::Invalid)?;
        let Wanted {
            address,
            rows,
            link,
        } = wanted;
        let is_place = link.as_bytes().contains(&b':');
        if !is_place && of.interface_named(link.as_bytes()).is_none() {
            return Err(Error::NoSuchDevice);
        }
        let bytes = StackTable::<()>::bytes(rows);
        let table = fallible::arc(Published {
            memory: ring_memory::allocate(bytes)?,
            rows,
            address,
            link,
            of: Arc::downgrade(&of),
            owner: Arc::downgrade(&current().process),
            asked: AtomicU32::new(0),
            asked_at_ns: AtomicU64::new(0),
            pollee: Pollee::new(),
        })?;
        self.table.set(table.clone()).map_err(|_| Error::Busy)?;
        publish(&table, &of)
    }

    fn table(&self) -> Result<&Arc<Published>> {
        self.table.get().ok_or(Error::NoSuchDevice)
    }
}

/// What a program asks for.
struct Wanted {
    address: Ipv4Addr,
    rows: usize,
    link: InterfaceName,
}

fn parse(bytes: &[u8; ATTACH_BYTES]) -> Option<Wanted> {
    let (address, rest) = bytes.split_first_chunk::<4>()?;
    let (rows, name) = rest.split_first_chunk::<4>()?;
    let address = Ipv4Addr::from(*address);
    let rows = u32::from_ne_bytes(*rows) as usize;
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = core::str::from_utf8(name.get(..end)?).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    let is_host = !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_broadcast());
    let is_possible =
        is_host && (1..=ROWS_MAX).contains(&rows) && !name.is_empty() && name.bytes().all(is_plain);
    let link = InterfaceName::new(name).filter(|_| is_possible)?;
    Some(Wanted {
        address,
        rows,
        link,
    })
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if let Some(table) = self.table.get() {
            withdraw(table);
        }
    }
}

impl File for TableFile {
    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            ATTACH => self.attach(argument).map(|()| 0),
            ANSWER => {
                self.table()?;
                ANSWERS.wake_all();
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        if !is_shared {
            return Err(Error::Invalid);
        }
        let memory = self.table()?.memory.clone();
        Ok(Window::new(memory, range.start, range.end - range.start)?)
    }

    fn poll(&self) -> Events {
        match self.table.get() {
            Some(table) if !table.is_answered() => Events::READABLE,
            _ => Events::empty(),
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        self.table.get().map(|table| &table.pollee)
    }

    fn label(&self) -> String {
        String::from("/dev/stacktable")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
