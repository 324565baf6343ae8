//! A device's interrupt as something to wait for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use super::abi;

/// An eventfd that the kernel signals when the device interrupts.
#[derive(Debug)]
pub struct Interrupt(OwnedFd);

impl Interrupt {
    /// The first one of an index.
    pub(super) fn new(device: BorrowedFd<'_>, index: u32) -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let interrupt = Self(event);
        interrupt.lead(device, index, true)?;
        Ok(interrupt)
    }

    /// Whether the first one of an index signals it, or nothing.
    pub(super) fn lead(
        &self,
        device: BorrowedFd<'_>,
        index: u32,
        is_signalled: bool,
    ) -> io::Result<()> {
        let set = abi::IrqSet {
            bytes: abi::bytes_of::<abi::IrqSet>(),
            flags: abi::IRQS_TO_EVENTFD,
            index,
            start: 0,
            count: 1,
            eventfd: match is_signalled {
                true => self.0.as_raw_fd(),
                false => abi::NO_EVENTFD,
            },
        };
        // SAFETY: it takes such a block, with one eventfd behind it.
        unsafe { abi::set::<{ abi::DEVICE_SET_IRQS }, _>(device, set) }
    }

    /// Forgets those that have come. It is a function of its own because `bench-echo` counts how often it runs.
    #[inline(never)]
    pub fn clear(&self) {
        // Without one it says so, which is all the same.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
