//! What a device may be told.

use base::DeviceAddr;
use mbuf::{ExternalStorage, Mbuf};

/// A range of device addresses, contiguous, made from memory that covers all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    addr: DeviceAddr,
    len: u32,
}

impl Span {
    /// Only for memory that covers the range.
    #[inline]
    pub(super) fn new(addr: DeviceAddr, len: u32) -> Self {
        Self { addr, len }
    }

    /// The bytes of a packet buffer, for a device to read.
    #[inline]
    pub fn of(buffer: &Mbuf) -> Self {
        Self::new(buffer.device_addr(), buffer.len() as u32)
    }

    /// The room behind the bytes of a packet buffer, for a device to write.
    #[inline]
    pub fn room_of(buffer: &Mbuf) -> Self {
        let addr = buffer.device_addr() + buffer.len() as u64;
        Self::new(addr, buffer.tailroom() as u32)
    }

    /// Part of memory that is lent to devices; `None` if it does not all lie inside.
    pub fn of_lent(memory: &impl ExternalStorage, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        if end > memory.memory().len() {
            return None;
        }
        let addr = memory.device() + offset as u64;
        Some(Self::new(addr, u32::try_from(len).ok()?))
    }

    /// The `len` bytes from `offset` on; `None` if they do not all lie inside.
    #[inline]
    pub fn part(&self, offset: u32, len: u32) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Self::new(self.addr + u64::from(offset), len))
    }

    /// Both as one, if `next` begins where this ends.
    #[inline]
    pub fn joined(&self, next: Self) -> Option<Self> {
        let len = self.len.checked_add(next.len)?;
        (self.addr + u64::from(self.len) == next.addr).then(|| Self::new(self.addr, len))
    }

    /// Where it begins on the device's bus.
    #[inline]
    pub fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it covers nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// Memory that has one address for a device: contiguous, and in the device's hands.
/// Sealed: only [`DmaBuf`](crate::DmaBuf) is.
pub trait HasDeviceAddr: sealed::Sealed {
    /// What the device must be told to reach `len` bytes at `offset`; `None` if they do
    /// not all lie inside.
    fn dev_addr(&self, offset: usize, len: usize) -> Option<Span>;
}
