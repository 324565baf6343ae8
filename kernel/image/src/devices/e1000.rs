//! Intel's e1000: its interrupt line, and where its buffers come from.

use alloc::boxed::Box;
use alloc::vec;

use ::e1000::{E1000, Interrupt, Parts};
use base::CpuId;
use hal::pci::interrupt_line;
use hal::{DmaBuf, NotContiguous, SgList};
use mach::irq::{self, Polarity, Trigger};
use mach::klog;
use mach::mem::DmaMemory;
use mach::sync::Once;
use mbuf::{FreeList, Pool};
use net::AREA_BYTES;
use pci::Function;

use crate::options;

/// Areas of receive buffers that are made where the contract is to be broken.
const BROKEN_AREAS: usize = 16;

/// The stack takes one card.
static CARD: Once<Interrupt> = Once::new();

/// Starts the driver if `function` is a card of this kind.
#[inline(never)]
pub fn start(function: &Function) {
    if !E1000::is_for(function) || CARD.get().is_some() {
        return;
    }
    function.claim();
    let Some(pool) = receive_pool() else {
        return;
    };
    let Parts { port, control } = match E1000::open(function, &iommu::memory_of(function), pool) {
        Ok(parts) => parts,
        Err(error) => return klog!("device e1000 refused: {error:?}"),
    };
    let Some(gsi) = route_line(function, &port) else {
        return klog!("device e1000 refused: it has no interrupt line");
    };
    let lead = move |_, cpu| irq::lead(gsi, cpu);
    net::attach_pairs(vec![Box::new(port)], Box::new(control), Box::new(lead));
}

/// Leads the card's line to the first CPU, and says which it is. The firmware has wired it to a pin of the
/// I/O APIC, level-triggered, by the number in the configuration space.
fn route_line(function: &Function, card: &E1000) -> Option<u32> {
    let line = interrupt_line(function)?;
    let interrupt = card.interrupt()?;
    CARD.call_once(|| interrupt);
    let vector = irq::allocate(on_interrupt, 0)?;
    let gsi = u32::from(line);
    irq::route(gsi, vector, CpuId(0), Trigger::Level, Polarity::High);
    Some(gsi)
}

fn on_interrupt(_: usize) {
    if let Some(card) = CARD.get() {
        card.acknowledge();
        net::interrupted(0);
    }
}

/// Where received frames land. `e1000.break_contract=1` on the command line makes areas
/// the way the driver in `docs/dma.md` got them, from single frames: a test of the check
/// that this must not pass.
fn receive_pool() -> Option<&'static (dyn Pool + Sync)> {
    if options::raw_values("e1000.break_contract").last() != Some("1") {
        return Some(net::packet_pool());
    }
    /// The card, of which there is one, keeps buffers of it for good.
    static POOL: FreeList = FreeList::new();
    for number in 0..BROKEN_AREAS {
        match area_of_single_frames()? {
            Ok(area) => _ = DmaBuf::into_packets(area, &POOL),
            Err(error) => {
                klog!("device e1000 refused: receive area {number} of {AREA_BYTES} bytes: {error}");
                return None;
            }
        }
    }
    Some(&POOL)
}

fn area_of_single_frames() -> Option<Result<DmaBuf, NotContiguous>> {
    SgList::alloc(&DmaMemory::Shared, AREA_BYTES)
        .ok()
        .map(SgList::join)
}
