//! null, zero, full, random, urandom: devices without a device (mem(4), random(4)).

use alloc::sync::Arc;

use base::PAGE_BYTES;
use mm::io::{Sink, Source};
use mm::{MemoryObject, SharedMemory};
use sync::{Error, Result};

use vfs::device_parts;
use vfs::devices::{Device, register as add};
use vfs::file::{File, FileRef, OpenFile, StatusFlags};

/// Linux's major number of the memory devices.
const MAJOR: u32 = 1;
/// Random bytes made at a time.
const RANDOM_CHUNK_BYTES: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Null = 3,
    Zero = 5,
    Full = 7,
    Random = 8,
    Urandom = 9,
}

const KINDS: [(&str, Kind); 5] = [
    ("null", Kind::Null),
    ("zero", Kind::Zero),
    ("full", Kind::Full),
    ("random", Kind::Random),
    ("urandom", Kind::Urandom),
];

/// Adds the five devices.
pub fn register() {
    for (name, kind) in KINDS {
        let minor = kind as u32;
        add(Device {
            name,
            major: MAJOR,
            minors: (minor, minor),
            mode: 0o666,
            open,
        });
    }
}

fn open(number: u64, _status: StatusFlags) -> Result<FileRef> {
    let (_, minor) = device_parts(number);
    let kind = KINDS
        .iter()
        .find(|(_, kind)| *kind as u32 == minor)
        .ok_or(Error::NoSuchDevice)?
        .1;
    Ok(Arc::new(MemoryDevice(kind)))
}

/// One of the five.
struct MemoryDevice(Kind);

impl File for MemoryDevice {
    fn read_at(&self, _open: &OpenFile, _offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        match self.0 {
            Kind::Null => Ok(0),
            Kind::Zero | Kind::Full => zero(to),
            Kind::Random | Kind::Urandom => fill(to, random::fill),
        }
    }

    fn write_at(&self, _open: &OpenFile, _offset: u64, from: &mut Source<'_>) -> Result<usize> {
        match self.0 {
            Kind::Full => Err(Error::NoSpace),
            _ => Ok(from.remaining()),
        }
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn moves_position(&self) -> bool {
        false
    }

    fn memory(self: Arc<Self>) -> Option<Arc<dyn MemoryObject>> {
        let endless = || Arc::new(SharedMemory::sparse(u64::MAX)) as Arc<dyn MemoryObject>;
        (self.0 == Kind::Zero).then(endless)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// What /dev/zero gives, a page at a time. A constant.
static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// Fills all of `to` with zeros.
fn zero(to: &mut Sink<'_>) -> Result<usize> {
    let start = to.done();
    loop {
        match to.put(&ZEROS) {
            Ok(PAGE_BYTES) => {}
            Err(error) if to.done() == start => return Err(error),
            Ok(_) | Err(_) => return Ok(to.done() - start),
        }
    }
}

/// Fills all of `to` with bytes that `make` makes.
fn fill(to: &mut Sink<'_>, make: fn(&mut [u8])) -> Result<usize> {
    let mut bytes = [0; RANDOM_CHUNK_BYTES];
    const _: () = assert!(
        RANDOM_CHUNK_BYTES <= PAGE_BYTES,
        "it lies on the kernel's stack"
    );
    let start = to.done();
    while to.remaining() > 0 {
        let len = to.remaining().min(bytes.len());
        make(&mut bytes[..len]);
        match to.put(&bytes[..len]) {
            Ok(_) => {}
            Err(error) if to.done() == start => return Err(error),
            Err(_) => break,
        }
    }
    Ok(to.done() - start)
}
