//! NVM Express: a disk for each namespace, with a queue and a message for each CPU.
//!
//! With virtual functions (`nvme.max_vfs=N`) their controllers are online before programs look for them, and have the
//! namespaces that `nvme.attach=NAMESPACE:FUNCTION[,...]` says. Their own drivers are programs'.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use ::nvme::{Access, Clock, Controller, Machine, Namespace, Wanted};
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
use crate::options;

const COMMAND: u16 = 0x04;
const COMMAND_BUS_MASTER: u32 = 1 << 2;
/// Where its registers lie.
const REGISTERS: u8 = 0;

/// The function, and the kernel's clock.
struct Place(&'static Function);

impl Clock for Place {
    fn now(&self) -> Instant {
        mach::time::now()
    }

    fn pause(&self) {
        core::hint::spin_loop();
        sched::resched_point();
    }
}

impl Machine for Place {
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

/// How many virtual functions a function is to have: of a controller of this kind, what the command line says.
pub fn virtual_functions(function: &Function) -> u16 {
    if !::nvme::is_for(function) {
        return 0;
    }
    let wanted = options::raw_values("nvme.max_vfs").last();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Starts the driver if `function` is a controller of this kind, and no virtual function's.
#[inline(never)]
pub fn start(function: &'static Function) {
    if !::nvme::is_for(function) || function.physical().is_some() {
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
    let vfs = pci::virtual_functions_of(function);
    let wanted = Wanted {
        queues: cpus,
        vectors: messages.count(),
        may_be_empty: vfs != 0,
    };
    match Controller::open(Access::Whole(registers), memory, Place(function), wanted) {
        Ok(mut controller) => {
            if vfs != 0 {
                give_to_functions(&mut controller, vfs);
            }
            attach(controller, memory);
        }
        Err(error) => klog!("device nvme refused: {error:?}"),
    }
}

/// Takes the controllers of virtual functions online, each with its namespaces.
fn give_to_functions(controller: &mut Controller<DmaMemory, Place>, vfs: u16) {
    if let Err(error) = controller.take_online(vfs) {
        return klog!("nvme: virtual functions stay offline: {error:?}");
    }
    for (namespace, function) in attachments() {
        if let Err(error) = controller.attach(namespace, function) {
            klog!("nvme: namespace {namespace} stays apart from function {function}: {error:?}");
        }
    }
}

/// Which namespace each virtual function, from 1, is to have.
fn attachments() -> impl Iterator<Item = (u32, u16)> {
    let pairs = options::raw_values("nvme.attach").flat_map(|list| list.split(','));
    pairs.filter_map(|pair| {
        let (namespace, function) = pair.split_once(':')?;
        Some((namespace.parse().ok()?, function.parse().ok()?))
    })
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
