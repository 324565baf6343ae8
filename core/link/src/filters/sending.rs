//! What may leave by a filter's queue.

use alloc::vec::Vec;

use mbuf::Chain;
use wire::MacAddr;

use super::Predicate;
use super::neighbours::Message;
use crate::headers::{Header, Packet, with_window};
use crate::prefix::IpPrefix;
use crate::protect::{ARP, Guard, Methods, Protection};

/// A predicate over what is sent, with the link's address that frames must carry.
#[derive(Clone, Debug)]
pub struct Sending {
    predicate: Predicate,
    /// What links with `mac-nospoof`, `restricted` and `ip-nospoof` may claim, for the predicate's addresses.
    guard: Guard,
}

impl Sending {
    /// For the station `mac`.
    pub fn new(predicate: Predicate, mac: MacAddr) -> Self {
        let local: IpPrefix = predicate.local();
        let guard = Guard {
            mac,
            secondary: Vec::new(),
            vid: None,
            on: Protection::MAC_NOSPOOF | Protection::RESTRICTED | Protection::IP_NOSPOOF,
            allowed: Vec::from([local]),
            learned: Vec::new(),
            methods: Methods::empty(),
            client_ids: Vec::new(),
            all_client_ids: false,
        };
        Self { predicate, guard }
    }

    /// The predicate.
    pub fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// Whether a frame may leave. It must not change afterwards.
    pub fn admits(&self, frame: &Chain) -> bool {
        let Some(header) = Header::of(frame).filter(|header| !header.is_tagged) else {
            return false;
        };
        let packet = Packet::of(&header, frame);
        if self.guard.check(&header, packet.as_ref(), frame).is_err() {
            return false;
        }
        if header.ether_type == ARP {
            return true;
        }
        packet.is_some_and(|packet| {
            self.predicate.admits_sent(&packet) || is_discovery(&header, &packet, frame)
        })
    }
}

fn is_discovery(header: &Header, packet: &Packet, frame: &Chain) -> bool {
    with_window(frame, |bytes| {
        Message::parse(header, Some(packet), bytes).is_some_and(|message| !message.is_from_router())
    })
}
