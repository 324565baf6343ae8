//! Intel's 82576, with one pair of queues.
//!
//! The message of the link, behind that of the pair, stays unrouted: nobody asks for it.

use alloc::boxed::Box;

use kernel::sched::Softirq;
use mach::klog;
use mach::mem::DmaMemory;
use mach::pci::Function;

use super::messages;

/// Pairs of queues: the stack uses one.
const PAIRS: u16 = 1;
/// The entry of the pair's message.
const ENTRY: u16 = 0;

/// Starts the driver if `function` is a card of this kind.
pub fn start(function: &Function) {
    if !::igb::is_for(function) {
        return;
    }
    function.claim();
    // The table of messages lies behind the card's registers, which must be there.
    hal::pci::enable(function);
    if messages::route(function, ENTRY, Softirq::Net).is_none() {
        return klog!("device igb refused: it has no MSI-X");
    }
    match ::igb::open(function, &DmaMemory, kernel::net::packet_pool(), PAIRS) {
        Ok(parts) => {
            let ports = parts.pairs.into_iter();
            ports.for_each(|port| kernel::net::attach(Box::new(port)));
        }
        Err(error) => klog!("device igb refused: {error:?}"),
    }
}
