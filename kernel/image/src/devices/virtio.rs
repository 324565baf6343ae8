//! Virtio devices, on PCI and in windows of memory.
//!
//! A machine without PCI (QEMU's microvm, Firecracker) describes its devices in ACPI's
//! tables, or where it has none on the command line as
//! `virtio_mmio.device=SIZE@ADDRESS:IRQ`.

use alloc::boxed::Box;

use base::{CpuId, PhysAddr};
use block::Parts;
use kernel_block::Family;
use mach::acpi::MmioDevice;
use mach::irq::{self, Polarity, Trigger, Vector};
use mach::klog;
use mach::mem::DmaMemory;
use mach::sync::Once;
use net::Port;
use sched::{Softirq, raise_numbered};
use virtio::{InterruptRegisters, Kind, MmioTransport, NO_VECTOR, PciTransport, Transport};
use virtio_9p::Virtio9p;
use virtio_balloon::VirtioBalloon;
use virtio_blk::VirtioBlk;
use virtio_console::VirtioConsole;
use virtio_fs::VirtioFs;

use super::memory_use;
use super::messages::Messages;

/// MSI-X entry of the only interrupt of a device whose queues share one.
const ENTRY: u16 = 0;
/// Windows of devices on one machine; many are empty.
const MMIO_DEVICES_MAX: usize = 32;

/// What the handler of a line interrupt must acknowledge, by the order of discovery. Handlers of
/// interrupts have no argument.
static LINES: [Once<InterruptRegisters>; MMIO_DEVICES_MAX] =
    [const { Once::new() }; MMIO_DEVICES_MAX];

/// Starts a driver for `function` if it is a virtio device.
#[inline(never)]
pub fn start_pci_function(function: &pci::Function) {
    if let Ok(transport) = PciTransport::new(function) {
        function.claim();
        start_pci(function, transport);
    }
}

/// Starts a driver for every device that is not on a PCI bus.
pub fn start_mmio_devices() {
    let cmdline = mach::boot::info().cmdline();
    let words = cmdline
        .split(' ')
        .filter_map(|word| word.strip_prefix("virtio_mmio.device="));
    let devices = words
        .filter_map(parse_mmio)
        .chain(mach::acpi::virtio_mmio());
    for (slot, device) in devices.take(MMIO_DEVICES_MAX).enumerate() {
        start_mmio(slot, &device);
    }
}

fn start_pci(function: &pci::Function, transport: PciTransport) {
    let transport = Transport::Pci(transport);
    let Some(source) = softirq_of(transport.kind()) else {
        return;
    };
    let messages = match transport.kind() {
        Kind::Net => {
            let cpus = mach::cpu::count() as u16;
            Messages::route(function, net::interrupted, usize::from, cpus)
        }
        Kind::Block => {
            let cpus = mach::cpu::count() as u16;
            Messages::route(function, raise_numbered, |_| source as usize, cpus)
        }
        _ => Messages::route(function, raise_numbered, |_| source as usize, 1),
    };
    match messages {
        None => klog!(
            "device at {:?} has no MSI-X and is left alone",
            function.address()
        ),
        Some(messages) => {
            let place = Place {
                vector: ENTRY,
                memory: iommu::memory_of(function),
            };
            start_device(transport, place, Interrupts::Messages(messages));
        }
    }
}

/// Parses `SIZE@ADDRESS:IRQ`, for example `512@0xfeb00e00:12`.
fn parse_mmio(text: &str) -> Option<MmioDevice> {
    let (size, rest) = text.split_once('@')?;
    let (address, gsi) = rest.split_once(':')?;
    let gsi = gsi.split(':').next()?;
    Some(MmioDevice {
        at: PhysAddr(number(address)?),
        bytes: usize::try_from(number(size)?).ok()?,
        gsi: gsi.parse().ok()?,
    })
}

/// A number as Linux's command line writes it: `0x` for hexadecimal, `K` and `M` after it.
fn number(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => (text.strip_suffix(['M', 'm']).unwrap_or(text), 1),
    };
    let unit = if text.ends_with(['M', 'm']) {
        1 << 20
    } else {
        unit
    };
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok()?,
        None => digits.parse().ok()?,
    };
    value.checked_mul(unit)
}

fn start_mmio(slot: usize, device: &MmioDevice) {
    let Some(registers) = mach::mem::map_device(device.at, device.bytes) else {
        return;
    };
    let Ok(transport) = MmioTransport::new(registers) else {
        return;
    };
    let Some(acknowledge) = transport.interrupt_registers() else {
        return;
    };
    let transport = Transport::Mmio(transport);
    let Some(source) = softirq_of(transport.kind()) else {
        return;
    };
    LINES[slot].call_once(|| acknowledge);
    let Some(vector) = line_vector(slot, source) else {
        return;
    };
    irq::route(device.gsi, vector, CpuId(0), Trigger::Edge, Polarity::High);
    // All queues share the line, which one CPU takes.
    let place = Place {
        vector: NO_VECTOR,
        memory: DmaMemory::Untranslated,
    };
    start_device(transport, place, Interrupts::Line(device.gsi));
}

/// One vector a line; its argument packs the slot and the source.
fn line_vector(slot: usize, source: Softirq) -> Option<Vector> {
    irq::allocate(line_interrupt, slot << 8 | source as usize)
}

fn line_interrupt(argument: usize) {
    let registers = LINES.get(argument >> 8).and_then(Once::get);
    let has_changed = registers.is_some_and(InterruptRegisters::acknowledge);
    match argument & 0xff {
        source if source == Softirq::Block as usize && has_changed => kernel_block::note_change(),
        source if source == Softirq::Balloon as usize && has_changed => mm::balloon::note_change(),
        source if source == Softirq::Net as usize => net::interrupted(0),
        source => raise_numbered(source),
    }
}

/// Which deferred work a device's interrupt starts; `None` for devices without a driver.
fn softirq_of(kind: Kind) -> Option<Softirq> {
    match kind {
        Kind::Net => Some(Softirq::Net),
        Kind::Block => Some(Softirq::Block),
        Kind::NineP | Kind::FileSystem => Some(Softirq::Volume),
        Kind::Console => Some(Softirq::Console),
        Kind::Balloon => Some(Softirq::Balloon),
        _ => None,
    }
}

/// What a device has of the machine.
struct Place {
    /// The interrupt of a device whose queues share one.
    vector: u16,
    /// Where its rings and buffers lie.
    memory: DmaMemory,
}

/// How a device interrupts.
enum Interrupts {
    /// By messages, of which each pair of queues of a card has one.
    Messages(Messages),
    /// By one line for all.
    Line(u32),
}

impl Interrupts {
    fn count(&self) -> u16 {
        match self {
            Self::Messages(messages) => messages.count(),
            Self::Line(_) => 1,
        }
    }

    fn lead(&self, entry: u16, cpu: CpuId) {
        match self {
            Self::Messages(messages) => _ = messages.lead(entry, cpu),
            Self::Line(gsi) => irq::lead(*gsi, cpu),
        }
    }
}

/// One kind's drivers are on the stack at a time: so none of these is inlined.
fn start_device(transport: Transport, place: Place, interrupts: Interrupts) {
    match transport.kind() {
        Kind::Net => start_net(transport, place.memory, interrupts),
        Kind::Block => start_disk(transport, place, interrupts),
        Kind::NineP => start_volume(transport, place),
        Kind::FileSystem => start_folder(transport, place),
        Kind::Console => start_console(transport, place),
        Kind::Balloon => start_balloon(transport, place, interrupts),
        kind => klog!("no driver for {kind:?}"),
    }
}

/// One pair for each CPU that has an interrupt of its own for it.
#[inline(never)]
fn start_net(transport: Transport, memory: DmaMemory, interrupts: Interrupts) {
    let pool = net::packet_pool();
    match virtio_net::open(transport, &memory, pool, interrupts.count()) {
        Ok(parts) => {
            let ports = parts.pairs.into_iter().map(|pair| Box::new(pair) as Port);
            let lead = move |pair, cpu| interrupts.lead(pair, cpu);
            net::attach_pairs(ports.collect(), Box::new(parts.control), Box::new(lead));
        }
        Err(error) => klog!("device virtio-net refused: {error:?}"),
    }
}

/// One queue for each CPU that has an interrupt of its own for it.
#[inline(never)]
fn start_disk(transport: Transport, place: Place, interrupts: Interrupts) {
    let queues = interrupts.count();
    let told = match interrupts {
        Interrupts::Line(_) => virtio_blk::Interrupts::Line,
        Interrupts::Messages(mut messages) => virtio_blk::Interrupts::Messages {
            changes: messages.add(disk_changed).then_some(queues),
        },
    };
    match VirtioBlk::open(transport, place.memory, queues, told) {
        Ok((device, channels)) => {
            let control = Box::new(device);
            let parts = Parts { control, channels };
            kernel_block::attach(parts, place.memory, Family::Virtio);
        }
        Err(error) => klog!("device virtio-blk refused: {error:?}"),
    }
}

/// An interrupt: a disk has another size.
fn disk_changed(_entry: usize) {
    kernel_block::note_change();
}

#[inline(never)]
fn start_volume(transport: Transport, place: Place) {
    match Virtio9p::new(transport, place.memory, place.vector) {
        Ok(channel) => fs_9p::attach(Box::new(channel)),
        Err(error) => klog!("device virtio-9p refused: {error:?}"),
    }
}

#[inline(never)]
fn start_folder(transport: Transport, place: Place) {
    match VirtioFs::new(transport, place.memory, place.vector) {
        Ok(channel) => fs_virtiofs::attach(Box::new(channel)),
        Err(error) => klog!("device virtio-fs refused: {error:?}"),
    }
}

#[inline(never)]
fn start_console(transport: Transport, place: Place) {
    match VirtioConsole::new(transport, place.memory, place.vector) {
        Ok(device) => tty::console::attach(Box::new(device)),
        Err(error) => klog!("device virtio-console refused: {error:?}"),
    }
}

/// An entry for what the device has used, and one for what the host asks for.
#[inline(never)]
fn start_balloon(transport: Transport, place: Place, interrupts: Interrupts) {
    let told = match interrupts {
        Interrupts::Line(_) => virtio_balloon::Interrupts::Line,
        Interrupts::Messages(mut messages) => {
            let changes = messages.count();
            if !messages.add(balloon_changed) {
                return klog!("device virtio-balloon has one interrupt only and is left alone");
            }
            virtio_balloon::Interrupts::Messages {
                queues: place.vector,
                changes,
            }
        }
    };
    match VirtioBalloon::new(transport, &place.memory, told) {
        Ok(device) => {
            if !mm::balloon::attach(Box::new(device), memory_use::look) {
                klog!("a machine has one virtio-balloon: another is left alone");
            }
        }
        Err(error) => klog!("device virtio-balloon refused: {error:?}"),
    }
}

/// An interrupt: the host asks for memory, or gives some back.
fn balloon_changed(_entry: usize) {
    mm::balloon::note_change();
}
