//! Intel's 82576: a pair of queues and a message for each CPU.
//!
//! The message of the link, behind those of the pairs, stays unrouted: nobody asks for it.

use alloc::boxed::Box;

use mach::klog;
use net::Port;
use pci::Function;

use super::messages::Messages;
use crate::options;

/// How many virtual functions a function is to have: of this kind of card, what the command line
/// says (`igb.max_vfs=N`).
pub fn virtual_functions(function: &Function) -> u16 {
    if !::igb::is_for(function) {
        return 0;
    }
    let wanted = options::raw_values("igb.max_vfs").last();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Starts the driver if `function` is a card of this kind.
pub fn start(function: &Function) {
    if !::igb::is_for(function) {
        return;
    }
    function.claim();
    // The table of messages lies behind the card's registers, which must be there.
    hal::pci::enable(function);
    let cpus = (mach::cpu::count() as u16).min(::igb::PAIRS_MAX);
    match Messages::route(function, net::interrupted, usize::from, cpus) {
        None => klog!("device igb refused: it has no MSI-X"),
        Some(messages) => open(function, messages),
    }
}

fn open(function: &Function, messages: Messages) {
    let memory = iommu::memory_of(function);
    match ::igb::open(function, &memory, net::packet_pool(), messages.count()) {
        Ok(parts) => {
            let ports = parts.pairs.into_iter().map(|pair| Box::new(pair) as Port);
            let lead = move |pair, cpu| _ = messages.lead(pair, cpu);
            net::attach_pairs(ports.collect(), Box::new(parts.control), Box::new(lead));
        }
        Err(error) => klog!("device igb refused: {error:?}"),
    }
}
