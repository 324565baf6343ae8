//! Intel's 82576: a pair of queues and a message for each CPU, or virtual functions.
//!
//! The message of the link, behind those of the pairs, stays unrouted: nobody asks for it. With
//! virtual functions (`igb.max_vfs=N`) there is one pair, and that message tells of what they ask.
//! Their own drivers are programs'.

use alloc::boxed::Box;

use mach::klog;
use net::Port;
use pci::Function;

use super::messages::Messages;
use crate::options;

/// How many virtual functions a function is to have: of this kind of card, what the command line
/// says (`igb.max_vfs=N`), seven at most, as in Linux.
pub fn virtual_functions(function: &Function) -> u16 {
    if !::igb::is_for(function) {
        return 0;
    }
    let wanted = options::raw_values("igb.max_vfs").last();
    let wanted = wanted.and_then(|count| count.parse::<u16>().ok());
    wanted.unwrap_or(0).min(::igb::VFS_MAX)
}

/// Starts the driver if `function` is a card of this kind.
#[inline(never)]
pub fn start(function: &Function) {
    if !::igb::is_for(function) {
        return;
    }
    function.claim();
    // The table of messages lies behind the card's registers, which must be there.
    hal::pci::enable(function);
    let vfs = pci::virtual_functions_of(function);
    let cpus = match vfs {
        0 => (mach::cpu::count() as u16).min(::igb::PAIRS_MAX),
        _ => 1,
    };
    let messages = Messages::route(function, net::interrupted, usize::from, cpus);
    match messages.and_then(|messages| with_own_message(messages, vfs)) {
        None => klog!("device igb refused: it has no MSI-X"),
        Some(messages) => open(function, messages, vfs),
    }
}

/// With virtual functions, the card's own message is heard.
fn with_own_message(mut messages: Messages, vfs: u16) -> Option<Messages> {
    let is_heard = vfs == 0 || messages.add(net::card_asked);
    is_heard.then_some(messages)
}

fn open(function: &Function, messages: Messages, vfs: u16) {
    let memory = iommu::memory_of(function);
    let pool = net::packet_pool();
    let parts = match vfs {
        0 => ::igb::open(function, &memory, pool, messages.count()),
        _ => ::igb::open_with_vfs(function, &memory, pool, vfs),
    };
    match parts {
        Ok(parts) => {
            let ports = parts.pairs.into_iter().map(|pair| Box::new(pair) as Port);
            let lead = move |pair, cpu| _ = messages.lead(pair, cpu);
            net::attach_pairs(ports.collect(), Box::new(parts.control), Box::new(lead));
        }
        Err(error) => klog!("device igb refused: {error:?}"),
    }
}
