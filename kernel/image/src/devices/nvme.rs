//! NVM Express: a disk for each namespace, with a queue and a message for each CPU.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use ::nvme::{Controller, Machine, Namespace, Wanted};
use base::Instant;
use block::Parts;
use hal::pci::PciFunction;
use kernel_block::Family;
use mach::klog;
use mach::mem::DmaMemory;
use pci::Function;
use sched::{Softirq, raise_numbered};
use sync::Mutex;

use super::messages::Messages;

const COMMAND: u16 = 0x04;
const COMMAND_BUS_MASTER: u32 = 1 << 2;
/// Where its registers lie.
const REGISTERS: u8 = 0;

/// The function, and the kernel's clock.
struct Place(&'static Function);

impl Machine for Place {
    fn now(&self) -> Instant {
        mach::time::now()
    }

    fn pause(&self) {
        core::hint::spin_loop();
        sched::resched_point();
    }

    fn let_reach_memory(&self, may: bool) {
        let command = self.0.config_read(COMMAND) & 0xffff;
        let command = match may {
            true => command | COMMAND_BUS_MASTER,
            false => command & !COMMAND_BUS_MASTER,
        };
        self.0.config_write(COMMAND, command);
    }
}

type Held = Mutex<Controller<DmaMemory, Place>>;

/// Starts the driver if `function` is a controller of this kind.
#[inline(never)]
pub fn start(function: &'static Function) {
    if !::nvme::is_for(function) {
        return;
    }
    function.claim();
    // The table of messages lies behind the registers, which must be there.
    hal::pci::enable(function);
    let cpus = mach::cpu::count() as u16;
    let source = Softirq::Block as usize;
    let Some(messages) = Messages::route(function, raise_numbered, |_| source, cpus) else {
        return klog!("device nvme refused: it has no MSI-X");
    };
    let Some(registers) = function.bar(REGISTERS) else {
        return klog!("device nvme refused: it has no registers");
    };
    let memory = iommu::memory_of(function);
    let wanted = Wanted {
        queues: cpus,
        vectors: messages.count(),
    };
    match Controller::open(registers, memory, Place(function), wanted) {
        Ok(controller) => attach(controller, memory),
        Err(error) => klog!("device nvme refused: {error:?}"),
    }
}

/// Makes its namespaces disks.
fn attach(controller: Controller<DmaMemory, Place>, memory: DmaMemory) {
    /// Controllers so far.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    if let Some(identity) = controller.identity() {
        let (model, serial) = (&identity.model, &identity.serial);
        klog!("nvme{number} model={model:?} serial={serial:?}");
    }
    let numbers = 0..controller.namespaces();
    let numbers = numbers.filter_map(|index| controller.namespace_number(index));
    let numbers: Vec<_> = numbers.collect();
    let controller = Arc::new(Held::new(controller));
    for (index, namespace) in numbers.into_iter().enumerate() {
        let family = Family::Nvme {
            controller: number,
            namespace,
        };
        match Namespace::start(&controller, index) {
            Ok((control, channels)) => {
                let control = Box::new(control);
                kernel_block::attach(Parts { control, channels }, memory, family);
            }
            Err(error) => klog!("nvme{number}n{namespace} refused: {error:?}"),
        }
    }
}
