//! The admin queue of an NVMe controller of a virtual function, which the kernel keeps.
//!
//! # Problem
//! A program that could send any admin command could rule what is not its own: namespaces of the controller's other
//! functions (`drivers/nvme`, `keeper.rs`).
//!
//! # Idea
//! Of the registers a program has the doorbells alone: the first page is not mapped, can be read and not be written. It asks
//! for a command by DEVICE_NVME_ADMIN, and by DEVICE_NVME_ENABLE for the controller to be up or down. The rings of the
//! admin queue lie in the kernel's memory, which the function sees at [`KERNEL_WINDOW`], where programs map nothing:
//! submissions to be read alone.
//!
//! A function keeps answering at its base addresses, whatever its program writes to the command register: else a
//! write of the kernel's could be missed.
//!
//! # The end
//! As that of what a program mapped: the function is stopped, the window taken out of its domain, and with the unit's word
//! for it the rings are freed (**Reached**).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use base::{DeviceAddr, Duration, Instant, PAGE_BYTES};
use hal::caching::MemoryType;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, Mmio};
use iommu::{Lent, Pages, Rights};
use mach::mem::{fallible::TryGrow, seen_at};
use nvme::{AdminKeeper, Clock};
use sync::{Error, Mutex, Result, Wait, WaitQueue};
use vfio::{KERNEL_WINDOW, NvmeAdmin};

use super::Device;
use crate::argument;

/// The base address of the registers, and where in it the doorbells begin, which are all that a program maps.
pub const REGISTERS: usize = 0;
pub const DOORBELLS: usize = 0x1000;
/// Between two looks at whether a command has ended.
const LOOK_TIME: Duration = Duration::from_micros(50);

/// See the module.
pub struct Keeper {
    admin: Mutex<AdminKeeper<Sleep>>,
    lent: Arc<Lent>,
}

/// Who waits lets others run.
struct Sleep;

impl Clock for Sleep {
    fn now(&self) -> Instant {
        mach::time::now()
    }

    fn pause(&self) {
        let until = Wait::UNINTERRUPTIBLE.until(mach::time::now() + LOOK_TIME);
        // Nobody wakes it: it ends with the time.
        _ = WaitQueue::new().wait(until, || None::<()>);
    }
}

/// Memory for the rings, and what is to be mapped for it.
struct Window(RefCell<Vec<Pages>>);

impl DmaSource for Window {
    fn dma_alloc<M: MemoryType>(
        &self,
        request: &DmaRequest,
    ) -> core::result::Result<DmaBuf<M>, DmaError> {
        let bytes = request.bytes().next_multiple_of(PAGE_BYTES) as u64;
        let no_memory = DmaError::OutOfMemory {
            bytes: request.bytes(),
        };
        let mut all = self.0.borrow_mut();
        let device = all
            .last()
            .map_or(KERNEL_WINDOW.start(), |last| last.device + last.bytes);
        all.make_room(1).map_err(|_| no_memory)?;
        let (memory, start) = seen_at(request, DeviceAddr(device))?;
        all.push(Pages {
            device,
            physical: start.0,
            bytes,
            rights: match request.is_read_only() {
                true => Rights::Read,
                false => Rights::ReadWrite,
            },
        });
        Ok(memory)
    }
}

impl Keeper {
    /// Of a function with these registers, which answers.
    ///
    /// Errors: `NoSuchDevice` if the controller is offline or none that we know, `OutOfMemory`.
    pub fn new(registers: Mmio, lent: Arc<Lent>) -> Result<Self> {
        let window = Window(RefCell::new(Vec::new()));
        let admin = AdminKeeper::new(registers, &window, Sleep).map_err(error_of)?;
        // From here on the rings go with it, when they are not reached any more.
        let keeper = Self {
            admin: Mutex::new(admin),
            lent,
        };
        for pages in window.0.into_inner() {
            keeper.lent.map(pages).map_err(|_| Error::OutOfMemory)?;
        }
        Ok(keeper)
    }

    /// Runs a reset of the function, with nobody at the controller.
    pub fn reset<R>(&self, reset: impl FnOnce() -> R) -> R {
        let mut admin = self.admin.lock();
        admin.was_reset();
        reset()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let is_out = self
            .lent
            .unmap(KERNEL_WINDOW.start(), KERNEL_WINDOW.bytes());
        // Nobody else has it, so the lock is free.
        if let (true, Some(mut admin)) = (is_out, self.admin.try_lock()) {
            admin.retire();
        }
    }
}

impl Device {
    /// The first byte of a base address that a program writes to or maps.
    pub(super) fn first_writable(&self, bar: usize) -> usize {
        match self.keeper.is_some() && bar == REGISTERS {
            true => DOORBELLS,
            false => 0,
        }
    }

    fn keeper(&self) -> Result<&Keeper> {
        let keeper = self.keeper.as_ref().ok_or(Error::NotTerminal)?;
        match self.config.lock().is_revoked() {
            true => Err(Error::WrongDevice),
            false => Ok(keeper),
        }
    }

    /// DEVICE_NVME_ENABLE.
    ///
    /// Errors: `NotTerminal` for other functions, `Invalid`, `WrongDevice` if it was revoked, `Io` if the controller does not come up or
    /// go down.
    pub(super) fn nvme_enable(&self, is_on: u64) -> Result<usize> {
        let mut admin = self.keeper()?.admin.lock();
        let done = match is_on {
            0 => admin.disable(),
            1 => admin.enable(),
            _ => return Err(Error::Invalid),
        };
        done.map(|()| 0).map_err(error_of)
    }

    /// DEVICE_NVME_ADMIN.
    ///
    /// Errors: the same, and `NotPermitted` for commands that no program may send.
    pub(super) fn nvme_admin(&self, at: u64) -> Result<usize> {
        let keeper = self.keeper()?;
        let mut asked: NvmeAdmin = argument::read(at)?;
        let ended = keeper.admin.lock().run(asked.command);
        let (status, result) = ended.map_err(error_of)?;
        (asked.status, asked.result) = (status.into(), result);
        argument::write(at, &asked, asked.argsz)?;
        Ok(0)
    }
}

fn error_of(error: nvme::Error) -> Error {
    match error {
        nvme::Error::NotPermitted => Error::NotPermitted,
        nvme::Error::OutOfMemory => Error::OutOfMemory,
        nvme::Error::Absent | nvme::Error::NotSupported => Error::NoSuchDevice,
        _ => Error::Io,
    }
}
