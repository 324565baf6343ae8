//! A device's messages (MSI-X): entry `n` is the interrupt of the queues that CPU `n` owns at first.

use alloc::vec::Vec;

use base::CpuId;
use hal::pci::{MsiMessage, Msix, PciAddress};
use mach::irq::{self, Vector};
use pci::Function;

/// Entries of a device that are routed.
pub struct Messages {
    function: PciAddress,
    msix: Msix,
    /// By entry.
    vectors: Vec<Vector>,
}

impl Messages {
    /// Lets entry `n` of the device call `handler` with `argument(n)` on CPU `n`, for so many CPUs,
    /// as far as there are entries and vectors; `None` if there are none.
    pub fn route(
        function: &Function,
        handler: fn(usize),
        argument: impl Fn(u16) -> usize,
        cpus: u16,
    ) -> Option<Self> {
        let mut messages = Self {
            function: function.address(),
            msix: Msix::new(function).ok()?,
            vectors: Vec::new(),
        };
        for entry in 0..cpus {
            let Some(vector) = irq::allocate(handler, argument(entry)) else {
                break;
            };
            messages.vectors.push(vector);
            if !messages.lead(entry, CpuId(entry.into())) {
                messages.vectors.pop();
                break;
            }
        }
        (messages.count() != 0).then_some(messages)
    }

    /// Lets the next entry call `handler` on CPU 0; false if there is none.
    pub fn add(&mut self, handler: fn(usize)) -> bool {
        let entry = self.count();
        let Some(vector) = irq::allocate(handler, entry.into()) else {
            return false;
        };
        self.vectors.push(vector);
        let is_led = self.lead(entry, CpuId(0));
        if !is_led {
            self.vectors.pop();
        }
        is_led
    }

    /// How many entries are routed.
    pub fn count(&self) -> u16 {
        self.vectors.len() as u16
    }

    /// From now on an entry interrupts `cpu`; false if there is no such entry.
    pub fn lead(&self, entry: u16, cpu: CpuId) -> bool {
        let Some(vector) = self.vectors.get(usize::from(entry)) else {
            return false;
        };
        let (address, data) = irq::msi_message(self.function, *vector, cpu);
        let message = MsiMessage { address, data };
        self.msix.route(entry, message).is_ok()
    }
}
