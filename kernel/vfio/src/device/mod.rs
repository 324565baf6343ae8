//! A function that a program drives.
//!
//! Its file has *regions*: the six base addresses and configuration space, each at its number
//! times 2^40. All open files of a device are one device.

mod config;
mod file;
mod info;
mod interrupts;
mod nvme;
mod registers;
mod reset;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hal::pci::PciFunction;
use mach::mem::fallible;
use mach::sync::Spin;
use sync::{Error, Mutex, Result};
use vfio::Config;

pub use file::file;

use crate::session::Session;
use crate::shape::Shape;
use crate::trigger::TriggerSlot;
use interrupts::Interrupts;
use nvme::Keeper;

const COMMAND: u16 = 0x04;
/// In the command register: it reaches out by itself.
const MASTER: u16 = 1 << 2;
/// It answers.
const MEMORY: u16 = 1 << 1;

/// See the module.
pub struct Device {
    session: Arc<Session>,
    config: Spin<Config>,
    interrupts: Spin<Interrupts>,
    errors: Arc<Errors>,
    /// Counted up when the device is wanted back.
    request: TriggerSlot,
    /// Of an NVMe controller whose admin queue is not the program's.
    keeper: Option<Keeper>,
    /// Held over a reset.
    resetting: Mutex<()>,
    /// Bytes that a program wrote and that reached nothing.
    dropped: AtomicU64,
}

/// Who is told that the IOMMU refused something to the device.
struct Errors(TriggerSlot);

impl iommu::Refused for Errors {
    fn refused(&self) {
        self.0.signal();
    }
}

impl Device {
    /// Takes the function over: it answers, reaches nothing by itself, and does not interrupt.
    /// Waits for the end of a reset.
    pub fn open(session: Arc<Session>) -> Result<Arc<Self>> {
        let group = session.group;
        group.end_reset();
        let mut device = Self {
            config: Spin::new(group.shape.config()),
            interrupts: Spin::new(Interrupts::new()),
            errors: Arc::new(Errors(TriggerSlot::new())),
            request: TriggerSlot::new(),
            keeper: None,
            resetting: Mutex::new(()),
            dropped: AtomicU64::new(0),
            session,
        };
        device.obey_config(&device.config.lock());
        if group.keeps_admin_queue {
            device.keeper = Some(device.new_keeper()?);
        }
        device.session.lent.tell(Some(device.errors.clone()));
        Ok(fallible::arc(device)?)
    }

    fn new_keeper(&self) -> Result<Keeper> {
        let registers = PciFunction::bar(self.shape(), nvme::REGISTERS as u8);
        Keeper::new(
            registers.ok_or(Error::NoSuchDevice)?,
            self.session.lent.clone(),
        )
    }

    fn shape(&self) -> &'static Shape {
        &self.session.group.shape
    }

    /// Makes the function's command register what the configuration says.
    fn obey_config(&self, config: &Config) {
        let command = match self.session.group.keeps_admin_queue && !config.is_revoked() {
            true => config.command() | MEMORY,
            false => config.command(),
        };
        self.shape().config_write(COMMAND, command.into());
    }

    /// Takes the function from its program, which is told and not asked. Registers that the program has mapped stay
    /// mapped, of a function that reaches nothing and interrupts nobody.
    pub fn revoke(&self) {
        let shape = self.shape();
        // It is not revoked twice.
        _ = self.with_registers(|| self.interrupts.lock().disable(shape));
        let mut config = self.config.lock();
        config.revoke();
        self.obey_config(&config);
        drop(config);
        self.begin_reset();
        self.request.signal();
    }

    fn begin_reset(&self) {
        let shape = self.shape();
        if let Some(reset) = shape.reset {
            reset.begin(shape);
            self.session.group.reset_began();
        }
    }

    /// Notes bytes that reached nothing.
    fn note_dropped(&self, bytes: usize) {
        self.dropped.fetch_add(bytes as u64, Relaxed);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let shape = self.shape();
        let command = shape.first_command() & !MASTER;
        shape.config_write(COMMAND, command.into());
        self.interrupts.get_mut().disable(shape);
        self.session.lent.tell(None);
        self.begin_reset();
        // Before the next device of the session has its place.
        self.keeper = None;
        self.session.device_ended();
    }
}
