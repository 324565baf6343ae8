//! Intel's 82576: a pair of queues and a message for each CPU.
//!
//! The message of the link, behind those of the pairs, stays unrouted: nobody asks for it.

use alloc::boxed::Box;

use mach::klog;
use mach::mem::DmaMemory;
use mach::pci::Function;
use net::Port;
use sched::Softirq;

use super::messages;

/// Starts the driver if `function` is a card of this kind.
pub fn start(function: &Function) {
    if !::igb::is_for(function) {
        return;
    }
    function.claim();
    // The table of messages lies behind the card's registers, which must be there.
    hal::pci::enable(function);
    let cpus = (mach::cpu::count() as u16).min(::igb::PAIRS_MAX);
    match messages::route(function, Softirq::Net, cpus) {
        0 => klog!("device igb refused: it has no MSI-X"),
        pairs => open(function, pairs),
    }
}

fn open(function: &Function, pairs: u16) {
    match ::igb::open(function, &DmaMemory, net::packet_pool(), pairs) {
        Ok(parts) => {
            let ports = parts.pairs.into_iter().map(|pair| Box::new(pair) as Port);
            net::attach_pairs(ports.collect(), Box::new(parts.control));
        }
        Err(error) => klog!("device igb refused: {error:?}"),
    }
}
