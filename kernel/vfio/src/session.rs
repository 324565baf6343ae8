//! A group that is open: the loan of its function, the container that it is in, its device.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use cred::Capability;
use iommu::{LendError, Lent};
use mach::mem::fallible;
use sync::{Error, Mutex, Result};

use crate::container::Container;
use crate::device::Device;
use crate::group::Group;

/// See the module; lives as long as the group's file or its device does.
pub struct Session {
    pub group: &'static Group,
    pub lent: Arc<Lent>,
    state: Mutex<State>,
    /// There is one, or it is just ending.
    has_device: AtomicBool,
}

#[derive(Default)]
struct State {
    container: Option<Arc<Container>>,
    device: Weak<Device>,
    is_revoked: bool,
}

impl Session {
    /// Takes a group.
    ///
    /// Errors: `Busy` if somebody has it, `NoSuchDevice` if it cannot be had, `NotPermitted` for one
    /// without an IOMMU to who has no CAP_SYS_RAWIO, `OutOfMemory`.
    pub fn open(group: &'static Group) -> Result<Arc<Self>> {
        let lent = match group.is_confined {
            true => lend(group)?,
            false => take_unconfined(group)?,
        };
        let session = Self {
            group,
            lent: fallible::arc(lent)?,
            state: Mutex::new(State::default()),
            has_device: AtomicBool::new(false),
        };
        let session = fallible::arc(session)?;
        group.begin(&session)?;
        Ok(session)
    }

    /// Takes the function from whoever has it: its device does nothing any more, its domain is emptied.
    pub fn revoke(&self) {
        let mut state = self.state.lock();
        state.is_revoked = true;
        if let Some(device) = state.device.upgrade() {
            device.revoke();
        }
        if let Some(container) = state.container.take() {
            container.detach(&self.lent);
        }
    }

    /// Whether a container is set.
    pub fn is_in_container(&self) -> bool {
        self.state.lock().container.is_some()
    }

    /// Enters a container: the function reaches what that maps.
    ///
    /// Errors: `Invalid` if it is in one, `WrongDevice` if it is revoked, those of [`Container::attach`].
    pub fn join(&self, container: Arc<Container>) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_revoked {
            return Err(Error::WrongDevice);
        }
        if state.container.is_some() {
            return Err(Error::Invalid);
        }
        container.attach(&self.lent)?;
        state.container = Some(container);
        Ok(())
    }

    /// Leaves it.
    ///
    /// Errors: `Invalid` if it is in none, `Busy` while there is a device.
    pub fn leave(&self) -> Result<()> {
        let mut state = self.state.lock();
        if self.has_device.load(SeqCst) {
            return Err(Error::Busy);
        }
        let container = state.container.take().ok_or(Error::Invalid)?;
        container.detach(&self.lent);
        Ok(())
    }

    /// Its device, new unless there is one.
    ///
    /// Errors: `Invalid` without a container that has an IOMMU, `Busy` while one is just ending,
    /// `WrongDevice` if it is revoked, `OutOfMemory`.
    pub fn device(self: &Arc<Self>) -> Result<Arc<Device>> {
        let mut state = self.state.lock();
        if state.is_revoked {
            return Err(Error::WrongDevice);
        }
        if let Some(device) = state.device.upgrade() {
            return Ok(device);
        }
        let container = state.container.as_ref();
        if !container.is_some_and(|container| container.has_iommu()) {
            return Err(Error::Invalid);
        }
        if self.has_device.swap(true, SeqCst) {
            return Err(Error::Busy);
        }
        let device = Device::open(self.clone())?;
        state.device = Arc::downgrade(&device);
        Ok(device)
    }

    /// The device is no more.
    pub fn device_ended(&self) {
        self.has_device.store(false, SeqCst);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nobody else has it, so the lock is free.
        let state = self.state.try_lock();
        if let Some(container) = state.and_then(|mut state| state.container.take()) {
            container.detach(&self.lent);
        }
        self.group.is_taken.store(false, SeqCst);
    }
}

fn lend(group: &Group) -> Result<Lent> {
    iommu::lend(group.shape.function.address()).map_err(|error| match error {
        LendError::Lent => Error::Busy,
        LendError::Unfit => Error::NoSuchDevice,
    })
}

/// Takes a group whose function reaches everything.
fn take_unconfined(group: &Group) -> Result<Lent> {
    cred::credentials().get().require(Capability::SysRawio)?;
    match group.is_taken.swap(true, SeqCst) {
        true => Err(Error::Busy),
        false => Ok(Lent::UNCONFINED),
    }
}
